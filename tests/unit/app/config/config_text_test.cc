// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "app/config/config_completion.h"
#include "app/config/config_help.h"
#include "app/config/config_settings.h"
#include "app/config/config_values.h"
#include "base/version.h"
#include "config_reading.h"

namespace gpuledger::app {
namespace {

using testing::HasSubstr;

std::string printed_by(std::vector<std::string> arguments) {
  const auto outcome = outcome_of(std::move(arguments));
  if (!outcome.ok() || !std::holds_alternative<PrintAndExit>(*outcome)) return "(nothing printed)";
  return std::get<PrintAndExit>(*outcome).text;
}

TEST(Help, EveryWayToAsk) {
  for (const char* flag : {"--help", "-help", "-h"}) EXPECT_EQ(printed_by({flag}), write_help(commands()));
  EXPECT_THAT(printed_by({"once", "--log-level=debug", "--help"}), testing::StartsWith("gpu-ledger once: takes one"));
  EXPECT_EQ(printed_by({"help"}), write_help(commands()));
  EXPECT_EQ(printed_by({"help", "once"}), printed_by({"once", "--help"}));
  EXPECT_EQ(printed_by({"help", "help"}), printed_by({"help", "--help"}));
  const auto wrong_setting = outcome_of({"help"}, {{"GPU_LEDGER_LOG_LEVEL", "loud"}});
  EXPECT_TRUE(wrong_setting.ok()) << "help is there when a setting is wrong";
}

void expect_to_fit_the_screen(const std::string& help) {
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(Help, EveryCommandHasItsOwn) {
  for (const Command& command : commands()) {
    const std::string name(command.name);
    const std::string help = printed_by({name, "--help"});
    EXPECT_THAT(help, HasSubstr("\nUsage: gpu-ledger " + name));
    EXPECT_THAT(help, HasSubstr("\nExample:\n  gpu-ledger " + name));
    EXPECT_THAT(help, HasSubstr("\nExit codes:\n  0 "));
    expect_to_fit_the_screen(help);
    EXPECT_THAT(write_help(commands()), HasSubstr("\n  " + name));
    for (const Setting& setting : settings()) {
      const bool own = takes_setting(command, setting);
      // A long name has its text below it.
      const std::string no = setting.form == SettingForm::kSwitch ? "[no-]" : "";
      const std::string shown = "\n  --" + no + std::string(setting.name);
      EXPECT_EQ(help.find(shown + " ") != help.npos || help.find(shown + "\n") != help.npos, own)
          << name << ": " << setting.name;
    }
  }
}

// An example is right use, but for files that are not here.
TEST(Help, EveryExampleIsRightUse) {
  for (const Command& command : commands()) {
    std::istringstream words{std::string(command.example)};
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    ASSERT_FALSE(arguments.empty());
    EXPECT_EQ(arguments.front(), "gpu-ledger");
    arguments.erase(arguments.begin());
    if (command.print != nullptr) {
      EXPECT_NE(printed_by(arguments), "(nothing printed)") << command.example;
    } else {
      EXPECT_EQ(config_of(arguments).command, &command) << command.example;
    }
  }
}

// A misspelt word in Command::takes would be a setting that its help does not show.
TEST(Help, WhatACommandTakesExists) {
  for (const Command& command : commands()) {
    std::istringstream words{std::string(command.takes)};
    for (std::string word; words >> word;) {
      const bool group = std::find(std::begin(kGroupWords), std::end(kGroupWords), word) != std::end(kGroupWords);
      EXPECT_TRUE(group || find_setting(word.starts_with('!') ? word.substr(1) : word) != nullptr)
          << command.name << ": " << word;
    }
  }
  static_assert(std::size(kGroupWords) == std::size(kGroupTitles));
}

TEST(Help, OfOneCommandShowsOnlyWhatItTakes) {
  const std::string top = printed_by({"top", "--help"});
  for (const char* flag : {"--url URL", "--[no-]batch", "--backend NAME", "--sample-interval", "--log-level"}) {
    EXPECT_THAT(top, HasSubstr(flag));
  }
  for (const char* flag : {"--textfile", "--web-config-file", "--state-file", "--for ", "--max-series"}) {
    EXPECT_THAT(top, testing::Not(HasSubstr(flag)));
  }
  EXPECT_THAT(printed_by({"record", "--help"}), testing::Not(HasSubstr("--listen-address")));
  EXPECT_THAT(printed_by({"version", "--help"}), testing::Not(HasSubstr("  --")));
}

TEST(Help, ASettingOfOneCommandNamesOneThatThereIs) {
  for (const Setting& setting : settings()) {
    for (const std::string& name : split_list(setting.command, ' ')) {
      const bool known = std::any_of(commands().begin(), commands().end(),
                                     [&](const Command& command) { return command.name == name; });
      EXPECT_TRUE(known) << setting.name << ": " << name;
    }
  }
}

TEST(Help, NamesEverySettingAndFitsTheScreen) {
  const std::string help = write_help(commands());
  for (const Setting& setting : settings()) EXPECT_THAT(help, HasSubstr(setting.name));
  for (const OlderName& older : older_names()) EXPECT_THAT(help, HasSubstr(older.name));
  EXPECT_THAT(help, HasSubstr("  --listen-address ADDRESS        where to serve HTTP"));
  EXPECT_THAT(help, testing::StartsWith("gpu-ledger: books every joule"));
  EXPECT_THAT(help, HasSubstr("(default 10s; SIGHUP)"));
  EXPECT_THAT(help, HasSubstr("  --[no-]collector.dcgm-modern    DCGM_FI_* on /gpu/metrics (default off;"));
  for (const std::string_view title : kGroupTitles) {
    const std::string line = "\n\n" + std::string(title) + ":\n";
    EXPECT_NE(help.find(line), help.npos) << title;
    EXPECT_EQ(help.find(line), help.rfind(line)) << title;
  }
  expect_to_fit_the_screen(help);
}

TEST(VersionFlag, OneLine) {
  const std::string expected = std::string("gpu-ledger ") + version() + " (commit unknown)\n";
  for (const char* word : {"--version", "-version", "-v", "-V", "version"}) EXPECT_EQ(printed_by({word}), expected);
  const auto known = read_config(ConfigSources{{"version"}, {}, commands(), "0123abc"});
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(std::get<PrintAndExit>(*known).text, std::string("gpu-ledger ") + version() + " (commit 0123abc)\n");
}

TEST(Documentation, IsWhatTheTableSays) {
  const std::pair<const char*, std::string> pages[] = {
      {"/docs/settings.md", write_settings_doc(commands())},
      {"/docs/gpu-ledger.1", write_man_page(commands())},
      {"/deploy/completions/gpu-ledger.bash", write_bash_completion(commands())},
      {"/deploy/completions/_gpu-ledger", write_zsh_completion(commands())},
      {"/deploy/completions/gpu-ledger.fish", write_fish_completion(commands())},
  };
  for (const auto& [name, text] : pages) {
    const auto page = read_file(std::string(GPU_LEDGER_SOURCE_DIR) + name, 1 << 20);
    ASSERT_TRUE(page.ok()) << page.error().message;
    EXPECT_EQ(*page, text) << name << ": build the target gpu_ledger_settings_doc and commit what it wrote";
  }
}

TEST(Documentation, NamesEverySettingItsVariableAndWhenItTakesEffect) {
  std::istringstream doc(write_settings_doc(commands()));
  std::map<std::string, std::string> rows;  // by variable
  for (std::string line; std::getline(doc, line);) {
    const size_t begin = line.find("`GPU_LEDGER_");
    if (line.starts_with("| `--")) rows[line.substr(begin, line.find('|', begin) - begin)] = line;
  }
  EXPECT_EQ(rows.size(), settings().size());
  for (const Setting& setting : settings()) {
    const std::string row = rows["`" + environment_name(setting.name) + "` "];
    EXPECT_THAT(row, HasSubstr(std::string(setting.name)));
    const bool live = setting.effect == SettingEffect::kLive;
    EXPECT_THAT(row, HasSubstr(live ? "| SIGHUP |" : setting.command.empty() ? "| restart |" : "|  |"));
  }
}

}  // namespace
}  // namespace gpuledger::app
