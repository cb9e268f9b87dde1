# SPDX-License-Identifier: Apache-2.0
# gpu_ledger_batches(TARGET [SIZE 16] [ALONE a.cc ...]): the files of each folder are compiled together, as many at a time as
# SIZE says. Most of the time of compiling one file goes into the headers that all of them share. Names in anonymous
# namespaces must then differ within a folder.
# ALONE: those that clash with others by macros, or take so long that a second core should have them.
function(gpu_ledger_batches target)
  cmake_parse_arguments(B "" "SIZE" "ALONE" ${ARGN})
  if(NOT B_SIZE)
    set(B_SIZE 16)
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(room ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    if(source IN_LIST B_ALONE OR NOT source MATCHES "\\.cc$" OR source MATCHES "\\.pb\\.cc$")
      continue()
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${target}_${folder}" folder)
    math(EXPR batch "${count_${folder}} + 0")
    math(EXPR count_${folder} "${batch} + 1")
    math(EXPR batch "${batch} / ${B_SIZE}")
    get_filename_component(source ${source} ABSOLUTE BASE_DIR ${room})
    set_property(SOURCE ${source} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # gcc takes the files of a batch for headers, in which a type of an anonymous namespace would be wrong.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()
