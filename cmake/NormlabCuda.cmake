# Whether the engine gets a GPU: NORMLAB_CUDA = auto (if nvcc and a torch with CUDA are there), on
# (or fail), off. After include(NormlabTorch).
#
# Sets NORMLAB_WITH_CUDA, and wherever nvcc is found NORMLAB_NVCC, with which
# normlab_cuda_object(OUTPUT SOURCE) declares a compiled .cu file. CMake's own CUDA language is not
# used: it wants more of a toolkit than the compiler.
set(NORMLAB_CUDA auto CACHE STRING "Run on NVIDIA GPUs: auto, on or off")
set_property(CACHE NORMLAB_CUDA PROPERTY STRINGS auto on off)
set(NORMLAB_CUDA_ARCHITECTURES 80 90 CACHE STRING "Compute capabilities to compile for")
find_program(NORMLAB_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)

set(NORMLAB_WITH_CUDA OFF)
if(NORMLAB_CUDA STREQUAL "off")
  set(_cuda_missing "NORMLAB_CUDA is off")
elseif(NOT NORMLAB_NVCC)
  set(_cuda_missing "nvcc was not found")
elseif(NOT NORMLAB_TORCH_HAS_CUDA)
  set(_cuda_missing "LibTorch has no CUDA")
else()
  set(NORMLAB_WITH_CUDA ON)
endif()
if(NORMLAB_WITH_CUDA)
  message(STATUS "GPU: built in, with ${NORMLAB_NVCC}")
elseif(NORMLAB_CUDA STREQUAL "on")
  message(FATAL_ERROR "NORMLAB_CUDA=on: ${_cuda_missing}")
else()
  message(STATUS "GPU: left out: ${_cuda_missing}")
endif()

# The command that compiles a .cu file: machine code for each architecture, and for later GPUs the
# intermediate code of the last.
set(NORMLAB_NVCC_COMMAND ${NORMLAB_NVCC} -std=c++20 --extended-lambda -O3
                         -ccbin ${CMAKE_CXX_COMPILER} -Xcompiler=-fPIC,-Wall
                         -I ${CMAKE_SOURCE_DIR})
foreach(_architecture IN LISTS NORMLAB_CUDA_ARCHITECTURES)
  list(APPEND NORMLAB_NVCC_COMMAND
       -gencode arch=compute_${_architecture},code=sm_${_architecture})
endforeach()
list(GET NORMLAB_CUDA_ARCHITECTURES -1 _latest)
list(APPEND NORMLAB_NVCC_COMMAND -gencode arch=compute_${_latest},code=compute_${_latest})
# Also for other folders: a test compiles with it.
set_property(GLOBAL PROPERTY NORMLAB_NVCC_COMMAND ${NORMLAB_NVCC_COMMAND})

function(normlab_cuda_object output source)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${NORMLAB_NVCC_COMMAND} -MD -MF ${output}.d -c ${source} -o ${output}
    DEPENDS ${source}
    DEPFILE ${output}.d
    COMMENT "nvcc ${source}"
    VERBATIM)
endfunction()

# The CUDA runtime that belongs to nvcc, as a library to link. Asked from nvcc, which may be a
# script that starts another one.
function(normlab_find_cuda_runtime result)
  execute_process(COMMAND ${NORMLAB_NVCC} -dryrun -x cu /dev/null ERROR_VARIABLE _dry
                  OUTPUT_QUIET)
  string(REGEX MATCHALL "\"-L[^\"]+\"" _folders "${_dry}")
  list(TRANSFORM _folders REPLACE "\"-L(.*)\"" "\\1")
  find_library(NORMLAB_CUDA_RUNTIME NAMES cudart_static cudart HINTS ${_folders}
               PATHS /usr/local/cuda/lib64)
  if(NOT NORMLAB_CUDA_RUNTIME)
    message(FATAL_ERROR "The CUDA runtime (libcudart) of ${NORMLAB_NVCC} was not found in: "
                        "${_folders}. Name it: cmake -DNORMLAB_CUDA_RUNTIME=/path/libcudart.so")
  endif()
  set(${result} ${NORMLAB_CUDA_RUNTIME} PARENT_SCOPE)
endfunction()
