# normlab_link_statically(TARGET): an executable with gRPC, protobuf, Abseil and what these need in it,
# where their archives are installed. Fifty shared libraries take longer to load than a short command
# takes to run (docs/performance.md).
function(normlab_link_statically target)
  if(NORMLAB_SANITIZE OR NORMLAB_FUZZ)
    return()
  endif()
  find_library(NORMLAB_ABSL_BASE_ARCHIVE libabsl_base.a)
  get_filename_component(folder "${NORMLAB_ABSL_BASE_ARCHIVE}" DIRECTORY)
  file(GLOB archives ${folder}/libabsl_*.a)
  foreach(name grpc++ grpc gpr upb address_sorting re2 cares protobuf)
    find_library(NORMLAB_ARCHIVE_${name} lib${name}.a)
    if(NORMLAB_ARCHIVE_${name})
      list(APPEND archives ${NORMLAB_ARCHIVE_${name}})
    elseif(NOT name STREQUAL "upb") # part of gRPC's own library since 1.60
      message(STATUS "no lib${name}.a: ${target} is linked with shared libraries and starts slower")
      return()
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES
    CXX_LINKER_LAUNCHER "sh;${CMAKE_SOURCE_DIR}/cmake/static_link.sh;${archives};--"
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/static_link.sh)
endfunction()
