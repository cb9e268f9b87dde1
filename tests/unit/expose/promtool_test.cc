// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "expose/expose.h"
#include "node_example.h"

namespace gpuledger::expose {
namespace {

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

class Promtool : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("gpu-ledger-promtool." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    ASSERT_EQ(run("promtool --version").status, 0) << "promtool is not on the PATH: install the prometheus package";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write_file(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(Promtool, ComplainsOnlyAboutNamesTheOlderSystemsFixed) {
  const std::string path = write_file("metrics", write_text(node_example(), example_options()));
  const Outcome outcome = run("promtool check metrics < " + path);
  const std::set<std::string> kept = {
      "gpu_process_count non-histogram and non-summary metrics should not have \"_count\" suffix",
  };
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(kept.contains(line)) << line;
  EXPECT_TRUE(outcome.status == 0 || outcome.status == 3) << outcome.status;  // 3: complaints
}

TEST_F(Promtool, NoticesABrokenExposition) {
  const std::string path =
      write_file("broken", write_text(node_example(), example_options()) + "# TYPE gpu_ledger_series gauge\n");
  EXPECT_EQ(run("promtool check metrics < " + path).status, 1);
}

// Prometheus' own OpenMetrics parser, reached through backfilling, which wants a time on every sample.
TEST_F(Promtool, ReadsOpenMetrics) {
  std::istringstream lines(write_openmetrics(node_example(), example_options()));
  std::string timed;
  for (std::string line; std::getline(lines, line);) timed += line + (line.starts_with('#') ? "\n" : " 1700000100\n");
  const std::string path = write_file("openmetrics", timed);
  const std::string blocks = folder_ / "blocks";
  const Outcome outcome = run("promtool tsdb create-blocks-from openmetrics " + path + " " + blocks);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(std::filesystem::exists(blocks));
}

}  // namespace
}  // namespace gpuledger::expose
