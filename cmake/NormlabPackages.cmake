# The libraries of everything but the torch side. Names are Debian's and Ubuntu's packages.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)
find_program(NORMLAB_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_library(NORMLAB_GRPCPP_REFLECTION grpc++_reflection REQUIRED)

# google/rpc/{status,error_details}.proto: the standard error model. They come from the Python
# package googleapis-common-protos, which deploy/setup.sh puts into .venv.
if(NOT NORMLAB_GOOGLEAPIS_DIR)
  file(GLOB candidates ${CMAKE_SOURCE_DIR}/.venv/lib/python*/site-packages)
  foreach(candidate ${candidates})
    if(EXISTS ${candidate}/google/rpc/status.proto)
      set(NORMLAB_GOOGLEAPIS_DIR ${candidate}) # not cached: another Python has another folder
    endif()
  endforeach()
endif()
if(NOT EXISTS "${NORMLAB_GOOGLEAPIS_DIR}/google/rpc/status.proto")
  message(FATAL_ERROR "google/rpc/status.proto not found. Run: bash deploy/setup.sh "
                      "(or: .venv/bin/pip install googleapis-common-protos)")
endif()
