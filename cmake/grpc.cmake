# SPDX-License-Identifier: Apache-2.0
# gl_grpc: gRPC without TLS (unix sockets only) and protobuf's lite runtime.
# Not by gRPC's own CMake package, which also wants OpenSSL, re2 and the full protobuf and knows no static archives, nor
# by pkg-config, which takes ten seconds over Abseil's hundred files.
find_program(GPU_LEDGER_PROTOC protoc)
set(grpc_name grpc++_unsecure)
if(GPU_LEDGER_STATIC)
  set(grpc_name libgrpc++_unsecure.a)
endif()
find_library(GPU_LEDGER_GRPC NAMES ${grpc_name})
if(NOT GPU_LEDGER_PROTOC OR NOT GPU_LEDGER_GRPC)
  message(FATAL_ERROR "gRPC or protoc is missing: run tools/setup.sh (packages libgrpc++-dev, libprotobuf-dev, protobuf-compiler)")
endif()

add_library(gl_grpc INTERFACE)
if(GPU_LEDGER_STATIC)
  get_filename_component(folder ${GPU_LEDGER_GRPC} DIRECTORY)
  # Which parts of Abseil are needed changes with every version; the linker takes what is used.
  file(GLOB abseil ${folder}/libabsl_*.a)
  set(archives ${GPU_LEDGER_GRPC})
  foreach(name grpc_unsecure gpr upb address_sorting cares protobuf-lite)
    # Ubuntu 24.04 calls its archive of c-ares libcares_static.a.
    find_library(GPU_LEDGER_ARCHIVE_${name} NAMES lib${name}.a lib${name}_static.a HINTS ${folder} REQUIRED)
    list(APPEND archives ${GPU_LEDGER_ARCHIVE_${name}})
  endforeach()
  target_link_libraries(gl_grpc INTERFACE -Wl,--start-group ${archives} ${abseil} -Wl,--end-group)
else()
  # gRPC's headers call into Abseil, so our code must link it too: gRPC's shared library does not pass it on.
  target_link_libraries(gl_grpc INTERFACE ${GPU_LEDGER_GRPC} grpc_unsecure gpr protobuf-lite absl_synchronization)
endif()

# gpu_ledger_proto(LIBRARY a.proto ...): the messages of these files, as <messages/a.pb.h> for it and its tests.
function(gpu_ledger_proto library)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/messages)
  file(MAKE_DIRECTORY ${made})
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR}/${file} DIRECTORY)
    add_custom_command(OUTPUT ${made}/${name}.pb.cc ${made}/${name}.pb.h
      COMMAND ${GPU_LEDGER_PROTOC} --proto_path=${folder} --cpp_out=${made} ${name}.proto
      DEPENDS ${file} VERBATIM)
    set_source_files_properties(${made}/${name}.pb.cc PROPERTIES COMPILE_OPTIONS -w)
    target_sources(${library} PRIVATE ${made}/${name}.pb.cc)
  endforeach()
  target_include_directories(${library} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
