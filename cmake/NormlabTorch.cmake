# Finds LibTorch and declares `normlab_torch`, an imported target made straight from a torch wheel.
#
# Looked for in this order: -DNORMLAB_TORCH_DIR=..., the project's .venv, any torch that python3 can
# import. The wheel's own TorchConfig.cmake is not used: it drags in the wheel's protobuf and, for a
# CUDA wheel, asks for a CUDA toolkit that nothing here needs.
set(NORMLAB_TORCH_MINIMUM 2.6)
set(NORMLAB_TORCH_DIR "" CACHE PATH "Folder of the torch package: it holds include/ and lib/")

set(_torch_fix "Install one into the project's environment with:
  python3 -m venv ${CMAKE_SOURCE_DIR}/.venv
  ${CMAKE_SOURCE_DIR}/.venv/bin/pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
or name the folder of another one: cmake -DNORMLAB_TORCH_DIR=/path/to/site-packages/torch ...")

# Sets `result` to the folder of the first torch found, or to nothing.
function(normlab_find_torch result)
  set(${result} "" PARENT_SCOPE)
  if(NORMLAB_TORCH_DIR)
    set(${result} ${NORMLAB_TORCH_DIR} PARENT_SCOPE)
    return()
  endif()
  file(GLOB found ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  foreach(folder IN LISTS found)
    if(EXISTS ${folder}/lib/libtorch_cpu.so)
      set(${result} ${folder} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  # Asks where torch is without importing it, which would take seconds.
  execute_process(
    COMMAND python3 -c
            "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    set(${result} ${folder} PARENT_SCOPE)
  endif()
endfunction()

normlab_find_torch(_torch)
if(NOT _torch)
  message(FATAL_ERROR "LibTorch is missing. ${_torch_fix}")
endif()
foreach(_file include/torch/csrc/api/include/torch/version.h share/cmake/Torch/TorchConfig.cmake
              lib/libtorch.so lib/libtorch_cpu.so lib/libc10.so)
  if(NOT EXISTS ${_torch}/${_file})
    message(FATAL_ERROR "${_torch} is no LibTorch: it lacks ${_file}. ${_torch_fix}")
  endif()
endforeach()

set(_version_header ${_torch}/include/torch/csrc/api/include/torch/version.h)
if(EXISTS ${_torch}/include/torch/headeronly/version.h) # newer releases only forward to this one
  set(_version_header ${_torch}/include/torch/headeronly/version.h)
endif()
file(STRINGS ${_version_header} _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" _numbers "${_lines}")
list(JOIN _numbers "." NORMLAB_TORCH_VERSION)
if(NORMLAB_TORCH_VERSION VERSION_LESS NORMLAB_TORCH_MINIMUM)
  message(FATAL_ERROR "LibTorch ${NORMLAB_TORCH_VERSION} in ${_torch} is too old; "
                      "${NORMLAB_TORCH_MINIMUM} or later is needed. ${_torch_fix}")
endif()
message(STATUS "LibTorch ${NORMLAB_TORCH_VERSION}: ${_torch}")

add_library(normlab_torch INTERFACE)
target_include_directories(normlab_torch SYSTEM INTERFACE ${_torch}/include
                                                          ${_torch}/include/torch/csrc/api/include)
# The CUDA libraries register themselves when loaded and nothing refers to their symbols, so the
# linker would drop them without --no-as-needed.
set(_libraries ${_torch}/lib/libtorch.so ${_torch}/lib/libtorch_cpu.so ${_torch}/lib/libc10.so)
set(NORMLAB_TORCH_HAS_CUDA OFF)
foreach(_name libtorch_cuda.so libc10_cuda.so)
  if(EXISTS ${_torch}/lib/${_name})
    set(NORMLAB_TORCH_HAS_CUDA ON)
    list(APPEND _libraries ${_torch}/lib/${_name})
  endif()
endforeach()
# at::parallel_for is a template over OpenMP. It has to run on the very runtime that the wheel brings
# along (named libgomp.so.1 or libgomp-HASH.so.1): a second one would have its own threads.
file(GLOB _openmp ${_torch}/lib/libgomp*.so*)
if(_openmp)
  list(APPEND _libraries ${_openmp})
else()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  list(APPEND _libraries ${OpenMP_CXX_LIBRARIES})
endif()
target_compile_options(normlab_torch INTERFACE -fopenmp)
target_link_libraries(normlab_torch INTERFACE -Wl,--push-state,--no-as-needed ${_libraries}
                                              -Wl,--pop-state)
target_link_options(normlab_torch INTERFACE -Wl,-rpath,${_torch}/lib -Wl,--enable-new-dtags
                    # The wheel's bundled libraries are found by its own RUNPATH at run time.
                    -Wl,--allow-shlib-undefined)
# Wheels before 2.7 were built with the old layout of std::string. The two files of ours that see torch
# pass no strings across, so they can follow.
file(STRINGS ${_torch}/share/cmake/Torch/TorchConfig.cmake _old_abi
     REGEX "_GLIBCXX_USE_CXX11_ABI=0")
if(_old_abi)
  target_compile_definitions(normlab_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
endif()
