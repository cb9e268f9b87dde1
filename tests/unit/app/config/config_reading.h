// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/commands.h"
#include "app/config/config.h"
#include "base/file.h"

namespace gpuledger::app {

using Environment = std::map<std::string, std::string>;

inline Result<ParseOutcome> outcome_of(std::vector<std::string> arguments, Environment environment = {}) {
  return read_config(ConfigSources{std::move(arguments), std::move(environment), commands()});
}

// The Config of input that must be right.
inline Config config_of(std::vector<std::string> arguments, Environment environment = {}) {
  const auto outcome = outcome_of(std::move(arguments), std::move(environment));
  if (!outcome.ok()) {
    ADD_FAILURE() << outcome.error().message;
    return {};
  }
  EXPECT_TRUE(std::holds_alternative<Config>(*outcome));
  return std::get<Config>(*outcome);
}

// The one line of input that must be wrong.
inline std::string error_of(std::vector<std::string> arguments, Environment environment = {}) {
  const auto outcome = outcome_of(std::move(arguments), std::move(environment));
  if (outcome.ok()) return "(no error)";
  EXPECT_EQ(outcome.error().message.find('\n'), std::string::npos);
  return outcome.error().message;
}

// A config file that goes with the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    std::string pattern = (std::filesystem::temp_directory_path() / "gl_config_XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    rewrite(text);
  }
  ~ConfigFile() { std::filesystem::remove_all(directory_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;

  void rewrite(const std::string& text) const { EXPECT_TRUE(write_file_atomically(path(), text).ok()); }
  std::string path() const { return directory_ + "/gpu-ledger.yaml"; }
  std::string flag() const { return "--config=" + path(); }

 private:
  std::string directory_;
};

}  // namespace gpuledger::app
