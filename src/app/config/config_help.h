#pragma once

#include <string>

// What people read about the settings, made from the table, so that it cannot be wrong.
namespace gpuledger::app {

std::string write_help();          // --help, at most 100 columns
std::string write_settings_doc();  // docs/settings.md
std::string write_man_page();      // docs/gpu-ledger.1

}  // namespace gpuledger::app
