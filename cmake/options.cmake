# SPDX-License-Identifier: Apache-2.0
option(GPU_LEDGER_STATIC "Link everything but glibc statically" OFF)
option(GPU_LEDGER_TESTS "Build the tests" ON)
option(GPU_LEDGER_FUZZ "Build the fuzzers and nothing else (clang)" OFF)
set(GPU_LEDGER_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)  # __int128
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Symbols for the debugger, optimised just enough that the property tests are quick.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -ffunction-sections -fdata-sections")
add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion -Werror=unused-result)

# gcc looks for garbage each time its memory has grown by some, and reads the whole precompiled header for it: up to a quarter
# of the time of a batch of tests. Half a gibibyte is soon enough.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=524288)
endif()

# Hardening, in every build except those of the sanitizers and fuzzers. tests/hardening.sh checks that the program has it.
include(CheckCXXCompilerFlag)
if(NOT GPU_LEDGER_SANITIZE AND NOT GPU_LEDGER_FUZZ)
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong)
  foreach(flag -fstack-clash-protection -fcf-protection -mbranch-protection=standard)  # the last two: x86, arm64
    string(MAKE_C_IDENTIFIER GPU_LEDGER_HAS${flag} known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options(${flag})
    endif()
  endforeach()
  add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} -pie")
endif()

if(GPU_LEDGER_SANITIZE)
  # -Og: at -O1 gcc takes nearly twice as long over the checks that the sanitizers add.
  add_compile_options(-Og -fsanitize=${GPU_LEDGER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GPU_LEDGER_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE)  # without these two it keeps nothing that uses a precompiled header
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
