// SPDX-License-Identifier: Apache-2.0
// Writes docs/settings.md and docs/gpu-ledger.1 into the directory given. A tool of the build, not of the product.
#include <cstdio>
#include <string>

#include "app/commands/commands.h"
#include "app/config/config_help.h"
#include "base/file.h"

int main(int argc, char** argv) {
  using namespace gpuledger;
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_ledger_settings_doc_writer DOCS_DIRECTORY\n");
    return 2;
  }
  const std::string directory = argv[1];
  for (const auto& [name, text] : {std::pair{"/settings.md", app::write_settings_doc(app::commands())},
                                   std::pair{"/gpu-ledger.1", app::write_man_page(app::commands())}}) {
    const Status written = write_file_atomically(directory + name, text);
    if (written.ok()) continue;
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 1;
  }
  return 0;
}
