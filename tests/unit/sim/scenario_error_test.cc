// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "sim_driver.h"

namespace gpuledger::sim_test {
namespace {

using namespace nvml;

class ScenarioErrorTest : public SimTest {
 protected:
  // What is said after the folder's name.
  std::string refused(const std::string& text) {
    EXPECT_EQ(try_open(text), kUnknown);
    const std::string error = nv.error();
    EXPECT_EQ(error.find('\n'), std::string::npos);
    return error.rfind(folder_, 0) == 0 ? error.substr(folder_.size() + 1) : error;
  }
};

TEST_F(ScenarioErrorTest, NamesFileLineAndWhatIsWrong) {
  EXPECT_EQ(refused("seed: 1\n"), "scenario.yaml:1: scenario needs 'gpus'");
  EXPECT_EQ(refused("gpus:\n  - {model: H200}\n  - {model: Voodoo2}\n").substr(0, 50),
            "scenario.yaml:3: gpu: 'model' is not one of: P100,");
  EXPECT_EQ(refused("gpus: [{model: H200}]\nwats: 3\n"), "scenario.yaml:2: scenario: unknown setting 'wats'");
  EXPECT_EQ(refused("gpus: [{model: H200}]\nprocesses:\n  - {pid: 1, gpus: 3}\n"),
            "scenario.yaml:3: process: 'gpus' names a GPU that is not there (there are 1)");
  EXPECT_EQ(refused("gpus: [{model: H200}]\nprocesses:\n  - {pid: 1, gpus: 0, memory: lots}\n"),
            "scenario.yaml:3: process: 'memory' must be a size such as 512MiB or 40GiB, or 'not available'");
  EXPECT_EQ(refused("gpus: [{model: H200}]\nprocesses:\n  - pid: 1\n    gpus: 0\n    load: {kind: gemm, busy: 300}\n"),
            "scenario.yaml:5: load: 'busy' must be between 0 and 100");
  EXPECT_EQ(refused("gpus: [{model: H200}]\nprocesses: [{pid: 1, gpus: 0, load: video}]\n"),
            "scenario.yaml:2: process: 'load' uses an encoder, and a H200 has none");
  EXPECT_EQ(refused("gpus: [{model: T4, mig: []}]\n"), "scenario.yaml:1: gpu: 'mig' is not something a T4 can do");
  EXPECT_EQ(refused("gpus: [{model: T4}]\nevents: [{at: 1, do: explode}]\n").substr(0, 47),
            "scenario.yaml:2: event: 'do' must be gpu_lost, ");
  EXPECT_EQ(refused("gpus: [{model: T4}]\nevents: [{at: 1, do: gpu_back, gpu: 0}]\n"),
            "scenario.yaml:2: event: 'gpu' was not lost before it is back");
  EXPECT_EQ(refused("gpus: [{model: T4}]\nprocesses: [{pid: 1, gpus: 0}, {pid: 1, gpus: 0}]\n"),
            "scenario.yaml:2: process: pid 1 is twice on GPU 0");
}

TEST_F(ScenarioErrorTest, NotEvenYaml) {
  const std::string said = refused("gpus: [{model: H200\nprocesses: ]\n");
  EXPECT_EQ(said.rfind("scenario.yaml:", 0), 0u) << said;
  EXPECT_NE(said.find("not YAML"), std::string::npos) << said;
  EXPECT_EQ(refused("just words\n"), "scenario.yaml:1: scenario must be a mapping of settings");
  EXPECT_NE(refused("").find("scenario"), std::string::npos);
}

TEST_F(ScenarioErrorTest, NoSuchFile) {
  EXPECT_EQ(try_open_file("/no/such/scenario.yaml"), kUnknown);
  EXPECT_STREQ(nv.error(), "/no/such/scenario.yaml: No such file or directory");
  EXPECT_EQ(try_open_file("/no/such/trace.jsonl.gz"), kUnknown);
  EXPECT_STREQ(nv.error(), "/no/such/trace.jsonl.gz: No such file or directory");
}

TEST_F(ScenarioErrorTest, AMendedScenarioIsReadAtTheNextTry) {
  EXPECT_EQ(try_open("gpus: 3\n"), kUnknown);
  unsigned count = 0;
  EXPECT_EQ(nv.nvmlDeviceGetCount_v2(&count), kUninitialized);
  std::ofstream(folder_ + "/scenario.yaml") << "gpus: [{model: T4}]\n";
  EXPECT_EQ(nv.nvmlInit_v2(), kSuccess);
  EXPECT_STREQ(nv.error(), "");
  EXPECT_EQ(nv.nvmlDeviceGetCount_v2(&count), kSuccess);
  EXPECT_EQ(count, 1u);
}

TEST_F(ScenarioErrorTest, TheClockMustBeOneOfTwo) {
  setenv("GPU_LEDGER_SIM_CLOCK", "sundial", 1);
  EXPECT_EQ(refused("gpus: [{model: T4}]\n"), "GPU_LEDGER_SIM_CLOCK must be real or virtual, not 'sundial'");
}

TEST_F(ScenarioErrorTest, TheExampleInTheReadmeIsAScenario) {
  std::ifstream file(GPU_LEDGER_SOURCE_DIR "/sim/README.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t from = text.find("```yaml\n") + 8;
  std::string example = text.substr(from, text.find("```", from) - from);
  const size_t relative = example.find("../tests");
  ASSERT_NE(relative, std::string::npos);
  example.replace(relative, 2, GPU_LEDGER_SOURCE_DIR);
  ASSERT_EQ(try_open(example), kSuccess) << nv.error();
  at(5);
  EXPECT_EQ(compute(gpu(0)).size(), 2u);
  EXPECT_GT(counter(gpu(3)), 0u);
}

TEST_F(ScenarioErrorTest, TheBuiltInNodeShowsEverything) {
  ASSERT_EQ(try_open_file(""), kSuccess) << nv.error();
  at(60);
  unsigned count = 0, clients = 0, instances = 0, idle = 0;
  ASSERT_EQ(nv.nvmlDeviceGetCount_v2(&count), kSuccess);
  EXPECT_EQ(count, 6u);
  for (unsigned i = 0; i < count; ++i) {
    unsigned here = 0;
    ProcessInfo list[16];
    here = 16;
    ASSERT_EQ(nv.nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu(i), &here, list), kSuccess);
    clients += here;
    Device mig = nullptr;
    for (unsigned m = 0; m < 7; ++m) instances += nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu(i), m, &mig) == kSuccess;
    idle += compute(gpu(i)).empty();
  }
  EXPECT_EQ(clients, 3u);
  EXPECT_EQ(instances, 3u);
  EXPECT_EQ(idle, 1u);
}

}  // namespace
}  // namespace gpuledger::sim_test
