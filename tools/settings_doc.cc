// SPDX-License-Identifier: Apache-2.0
// Writes docs/settings.md, docs/gpu-ledger.1 and deploy/completions into the source tree given. A tool of the build,
// not of the product.
#include <cstdio>
#include <string>

#include "app/commands/commands.h"
#include "app/config/config_completion.h"
#include "app/config/config_help.h"
#include "base/file.h"

int main(int argc, char** argv) {
  using namespace gpuledger;
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_ledger_settings_doc_writer SOURCE_DIRECTORY\n");
    return 2;
  }
  const std::string directory = argv[1];
  const auto commands = app::commands();
  for (const auto& [name, text] : {
           std::pair{"/docs/settings.md", app::write_settings_doc(commands)},
           std::pair{"/docs/gpu-ledger.1", app::write_man_page(commands)},
           std::pair{"/deploy/completions/gpu-ledger.bash", app::write_bash_completion(commands)},
           std::pair{"/deploy/completions/_gpu-ledger", app::write_zsh_completion(commands)},
           std::pair{"/deploy/completions/gpu-ledger.fish", app::write_fish_completion(commands)},
       }) {
    const Status written = write_file_atomically(directory + name, text);
    if (written.ok()) continue;
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 1;
  }
  return 0;
}
