// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/sim_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/runtime/sim_node_files.h"
#include "base/dynlib.h"
#include "base/file.h"
#include "support/proc_tree.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

pid_t pid_of_a_dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return child;
}

class SimNodeTest : public ::testing::Test {
 protected:
  SimNodeTest() { ::setenv("TMPDIR", tree_.root().c_str(), 1); }
  ~SimNodeTest() override { ::unsetenv("TMPDIR"); }

  fs::path add_folder(const std::string& name) {
    tree_.write(name + "/proc/1/stat", "x");
    return fs::path(tree_.root()) / name;
  }

  ::gpuledger::testing::ProcTree tree_;
};

TEST_F(SimNodeTest, ClearsUpAfterProgramsThatWereKilledAndNobodyElse) {
  const fs::path dead = add_folder("gpu-ledger-sim-" + std::to_string(pid_of_a_dead_process()) + "-abcdef");
  const fs::path living = add_folder("gpu-ledger-sim-" + std::to_string(::getpid()) + "-abcdef");
  const fs::path odd[] = {add_folder("gpu-ledger-sim-"), add_folder("gpu-ledger-sim-0-a"),
                          add_folder("gpu-ledger-sim-abcdef"), add_folder("gpu-ledger-sim-4194305"),
                          add_folder("other-4194305-a")};
  const auto node = SimNode::prepare("", "/nowhere/libnvidia-ml.so.1");
  ASSERT_TRUE(node.ok()) << node.error().message;
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living));
  for (const fs::path& each : odd) EXPECT_TRUE(fs::exists(each)) << each;
}

TEST_F(SimNodeTest, TheFolderGoesWithTheNode) {
  auto node = SimNode::prepare("", "/nowhere/libnvidia-ml.so.1");
  ASSERT_TRUE(node.ok()) << node.error().message;
  const fs::path folder = fs::path((*node)->proc_root()).parent_path();
  EXPECT_EQ(folder.filename().string().rfind("gpu-ledger-sim-" + std::to_string(::getpid()) + "-", 0), 0);
  EXPECT_TRUE(fs::is_directory(folder));
  node->reset();
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(SimNodeTest, AFolderThatCannotBeWrittenToIsNotTheLast) {
  for (const char* const wrong : {"/proc", "/nowhere/at/all"}) {
    ::setenv("TMPDIR", wrong, 1);
    const auto node = SimNode::prepare("", "/nowhere/libnvidia-ml.so.1");
    ASSERT_TRUE(node.ok()) << node.error().message;
    EXPECT_TRUE(fs::is_directory(fs::path((*node)->proc_root()).parent_path()));
  }
}

TEST_F(SimNodeTest, ACarriedSimulatorIsLoadedFromMemory) {
  const auto bytes = read_file(GPU_LEDGER_BINARY_DIR "/sim/libnvidia-ml.so.1", 256 << 20);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  const auto node = SimNode::prepare("", "", *bytes);
  ASSERT_TRUE(node.ok()) << node.error().message;
  for (int time = 0; time < 2; ++time) {  // a driver is closed and opened again
    const auto library = DynLib::open((*node)->library());
    ASSERT_TRUE(library.ok()) << library.error().message;
    EXPECT_NE(library->symbol("nvmlInit_v2"), nullptr);
    const auto maps = read_file("/proc/self/maps", 16 << 20);
    EXPECT_THAT(*maps, HasSubstr("/memfd:libnvidia-ml.so.1"));
  }
}

TEST_F(SimNodeTest, ANamedLibraryIsTakenRatherThanTheCarriedOne) {
  const auto node = SimNode::prepare("", "/nowhere/libnvidia-ml.so.1", "not a library");
  ASSERT_TRUE(node.ok()) << node.error().message;
  EXPECT_EQ((*node)->library(), "/nowhere/libnvidia-ml.so.1");
}

TEST_F(SimNodeTest, SaysInOneLineThatTheCarriedOneCannotBeLoaded) {
  const auto node = SimNode::prepare("", "", "not a library");
  ASSERT_FALSE(node.ok());
  EXPECT_THAT(node.error().message,
              AllOf(HasSubstr("--backend=sim"), HasSubstr("--nvml-library"), Not(HasSubstr("\n"))));
}

TEST_F(SimNodeTest, SaysInOneLineThatThereIsNone) {
  const auto node = SimNode::prepare("", "", "");  // nothing is beside this test's program
  ASSERT_FALSE(node.ok());
  EXPECT_THAT(node.error().message, AllOf(HasSubstr("--backend=sim"), HasSubstr("sim/libnvidia-ml.so.1"),
                                          HasSubstr("--nvml-library"), Not(HasSubstr("\n"))));
}

TEST(PodFile, AMissingFileGivesNoViewAndSaysWhy) {
  PodFile file("/nonexistent/pods.json", {});
  EXPECT_EQ(file.view(), nullptr);
  EXPECT_FALSE(file.health().up);
  EXPECT_EQ(file.health().errors.at("not_found"), 1u);
}

}  // namespace
}  // namespace gpuledger::app
