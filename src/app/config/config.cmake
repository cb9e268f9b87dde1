# SPDX-License-Identifier: Apache-2.0
# The settings are a library: tests and documentation need them without the program.
find_package(yaml-cpp REQUIRED)
# yaml-cpp for all folders: the packages' target is the shared library, called yaml-cpp in Debian 12 and
# yaml-cpp::yaml-cpp in newer ones.
add_library(gl_yaml INTERFACE)
if(GPU_LEDGER_STATIC)
  find_library(YAML_CPP_ARCHIVE libyaml-cpp.a REQUIRED)
  target_link_libraries(gl_yaml INTERFACE ${YAML_CPP_ARCHIVE})
else()
  target_link_libraries(gl_yaml INTERFACE $<IF:$<TARGET_EXISTS:yaml-cpp::yaml-cpp>,yaml-cpp::yaml-cpp,yaml-cpp>)
endif()

add_library(gl_config STATIC
  config/config.cc
  config/config_arguments.cc
  config/config_bill_values.cc
  config/config_completion.cc
  config/config_environment.cc
  config/config_help.cc
  config/config_older_names.cc
  config/config_settings.cc
  config/config_values.cc
  config/config_yaml.cc
  config/exporter_url.cc
  config/url_user.cc)
target_link_libraries(gl_config PUBLIC gl_base PRIVATE gl_yaml)

# cmake --build ... --target gpu_ledger_settings_doc: regenerates docs/settings.md, docs/gpu-ledger.1 and
# deploy/completions.
add_executable(gpu_ledger_settings_doc_writer EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/settings_doc.cc)
target_link_libraries(gpu_ledger_settings_doc_writer PRIVATE gl_app)
add_custom_target(gpu_ledger_settings_doc
  COMMAND gpu_ledger_settings_doc_writer ${PROJECT_SOURCE_DIR})
