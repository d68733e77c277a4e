# normlab_proto_library(NAME PROTOS a.proto ... [ROOT dir] [LINK libs...]): C++ messages and gRPC
# stubs of protos below ROOT (proto/). Generated code is included as "normlab/v1/run.pb.h".
function(normlab_proto_library name)
  cmake_parse_arguments(arg "" "ROOT" "PROTOS;LINK" ${ARGN})
  set(root ${CMAKE_SOURCE_DIR}/proto)
  if(arg_ROOT)
    set(root ${arg_ROOT})
  endif()
  set(out ${CMAKE_BINARY_DIR}/generated/proto)
  file(MAKE_DIRECTORY ${out})
  set(sources)
  foreach(proto ${arg_PROTOS})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(outputs ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    set(options --cpp_out=${out})
    if(stem MATCHES "_service$|/worker$")
      list(APPEND outputs ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
      list(APPEND options --grpc_out=${out} --plugin=protoc-gen-grpc=${NORMLAB_GRPC_CPP_PLUGIN})
    endif()
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${Protobuf_PROTOC_EXECUTABLE} -I ${root} ${options} ${proto}
      DEPENDS ${root}/${proto}
      WORKING_DIRECTORY ${root}
      COMMENT "protoc ${proto}"
      VERBATIM)
    list(APPEND sources ${outputs})
  endforeach()
  add_library(${name} STATIC ${sources})
  normlab_files_apart(${name})
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  # An eighth of the build with AddressSanitizer, to look for faults of protoc's.
  if(NORMLAB_SANITIZE MATCHES "address" AND NOT NORMLAB_FUZZ)
    target_compile_options(${name} PRIVATE -O0 -fno-sanitize=all)
  endif()
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf PkgConfig::GRPCPP ${arg_LINK})
endfunction()
