# SPDX-License-Identifier: Apache-2.0
# The release for arm64 (Grace Hopper, Grace Blackwell), built on amd64: cmake --preset release-arm64
# Compiler and emulator are Debian's (tools/setup.sh --release); the libraries are in a root of their own.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../tools/arm64_root.sh
  OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "There are no arm64 libraries to build with, see above.")
endif()
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT ${root})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The path of this root is not written into the program, so that every machine builds the same program.
set(CMAKE_CXX_FLAGS_INIT -ffile-prefix-map=${root}=)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${root})
