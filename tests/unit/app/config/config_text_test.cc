#include <gmock/gmock.h>

#include <sstream>

#include "app/config/config_help.h"
#include "app/config/config_settings.h"
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
  for (const char* flag : {"--help", "-help", "-h"}) EXPECT_EQ(printed_by({flag}), write_help());
  EXPECT_EQ(printed_by({"once", "--log-level=debug", "--help"}), write_help());
}

TEST(Help, NamesEverySettingAndFitsTheScreen) {
  const std::string help = write_help();
  for (const Setting& setting : settings()) EXPECT_THAT(help, HasSubstr(setting.name));
  for (const OlderName& older : older_names()) EXPECT_THAT(help, HasSubstr(older.name));
  EXPECT_THAT(help, HasSubstr("  --listen-address ADDRESS        where to serve HTTP"));
  EXPECT_THAT(help, testing::StartsWith("gpu-ledger: books every joule"));
  EXPECT_THAT(help, HasSubstr("(default 10s)"));
  EXPECT_THAT(help, HasSubstr("  --[no-]collector.dcgm-modern    DCGM_FI_* on /gpu/metrics (default off)"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(VersionFlag, OneLine) {
  const std::string expected = std::string("gpu-ledger ") + version() + "\n";
  EXPECT_EQ(printed_by({"--version"}), expected);
  EXPECT_EQ(printed_by({"-version"}), expected);
}

TEST(Documentation, IsWhatTheTableSays) {
  const std::string docs = GPU_LEDGER_SOURCE_DIR "/docs";
  const auto settings_doc = read_file(docs + "/settings.md", 1 << 20);
  const auto man_page = read_file(docs + "/gpu-ledger.1", 1 << 20);
  ASSERT_TRUE(settings_doc.ok()) << settings_doc.error().message;
  ASSERT_TRUE(man_page.ok()) << man_page.error().message;
  EXPECT_EQ(*settings_doc, write_settings_doc()) << "build the target gpu_ledger_settings_doc and commit docs/";
  EXPECT_EQ(*man_page, write_man_page()) << "build the target gpu_ledger_settings_doc and commit docs/";
}

TEST(Documentation, NamesEverySettingAndItsVariable) {
  const std::string doc = write_settings_doc();
  for (const Setting& setting : settings()) {
    EXPECT_THAT(doc, HasSubstr(std::string(setting.name)));
    EXPECT_THAT(doc, HasSubstr("`" + environment_name(setting.name) + "`"));
  }
}

}  // namespace
}  // namespace gpuledger::app
