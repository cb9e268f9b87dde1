// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim_driver.h"

namespace gpuledger::sim_test {
namespace {

using namespace nvml;
namespace fs = std::filesystem;

class NodeRootTest : public SimTest {
 protected:
  void SetUp() override {
    SimTest::SetUp();
    root_ = folder_ + "/root";
    setenv("GPU_LEDGER_SIM_ROOT", root_.c_str(), 1);
  }
  std::string read(const std::string& name) {
    std::ifstream file(root_ + "/" + name, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  bool exists(const std::string& name) { return fs::exists(root_ + "/" + name); }
  std::string root_;
};

constexpr char kTenants[] = R"yaml(
gpus: [{model: H200}]
processes:
  - pid: 901
    name: evil) name R 1
    command: python3 train.py --lr 1
    gpus: 0
    owner: {namespace: ml-team, pod: train-0, container: trainer, pod_uid: 11111111-2222-4333-8444-555555555555,
            container_id: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, labels: {app: train}}
  - {pid: 902, gpus: 0, owner: {namespace: ml-team, pod: train-0, container: sidecar, pod_uid: 11111111-2222-4333-8444-555555555555}}
  - {pid: 903, gpus: 0, owner: {docker: web, id: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb}}
  - {pid: 904, gpus: 0, owner: {slurm: "77", step: "2"}}
  - {pid: 905, gpus: 0, owner: {systemd: render.service}}
  - {pid: 906, gpus: 0, start: 10, end: 20}
  - {pid: 907, gpus: 0, real: true}
)yaml";

TEST_F(NodeRootTest, ProcessesLookAsInProc) {
  open(kTenants);
  gpu();
  EXPECT_EQ(read("proc/901/comm"), "evil) name R 1\n");
  EXPECT_EQ(read("proc/901/cmdline"), std::string("python3\0train.py\0--lr\0001\0", 24));
  // Past the last parenthesis the fields are those of proc(5); the 22nd is the start in ticks since boot.
  const std::string stat = read("proc/901/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  EXPECT_EQ(field, "8640000");
  EXPECT_EQ(read("proc/stat").substr(read("proc/stat").find("btime")), "btime 1767139200\n");
  EXPECT_NE(read("proc/901/status").find("NSpid:\t901\n"), std::string::npos);
  EXPECT_FALSE(exists("proc/907"));
}

TEST_F(NodeRootTest, CgroupsNameTheOwner) {
  open(kTenants);
  gpu();
  EXPECT_EQ(
      read("proc/901/cgroup"),
      "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_4333_8444_555555555555.slice/"
      "cri-containerd-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.scope\n");
  EXPECT_EQ(read("proc/903/cgroup"),
            "0::/system.slice/docker-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.scope\n");
  EXPECT_EQ(read("proc/904/cgroup"), "0::/system.slice/slurmstepd.scope/job_77/step_2/user/task_0\n");
  EXPECT_EQ(read("proc/905/cgroup"), "0::/system.slice/render.service\n");
}

TEST_F(NodeRootTest, PodsAreAKubeletsAnswer) {
  open(kTenants);
  gpu();
  const auto list = nlohmann::json::parse(read("kubelet/pods.json"));
  EXPECT_EQ(list["kind"], "PodList");
  ASSERT_EQ(list["items"].size(), 1u);
  const auto& pod = list["items"][0];
  EXPECT_EQ(pod["metadata"]["name"], "train-0");
  EXPECT_EQ(pod["metadata"]["namespace"], "ml-team");
  EXPECT_EQ(pod["metadata"]["labels"]["app"], "train");
  ASSERT_EQ(pod["status"]["containerStatuses"].size(), 2u);
  EXPECT_EQ(pod["status"]["containerStatuses"][0]["containerID"], "containerd://" + std::string(64, 'a'));
  EXPECT_EQ(pod["spec"]["containers"][1]["name"], "sidecar");
}

TEST_F(NodeRootTest, ComesAndGoesWithTheProcesses) {
  open(kTenants);
  gpu();
  EXPECT_FALSE(exists("proc/906"));
  at(10);
  compute(gpu());
  EXPECT_TRUE(exists("proc/906/stat"));
  at(20);
  compute(gpu());
  EXPECT_FALSE(exists("proc/906"));
  nv.nvmlShutdown();
  EXPECT_TRUE(exists("proc/901/stat")) << "a closed driver does not end processes";
  nv.reset();
  EXPECT_FALSE(exists("proc"));
  EXPECT_FALSE(exists("kubelet"));
}

TEST_F(NodeRootTest, APidThatIsUsedAgainHasANewStart) {
  open("gpus: [{model: T4}]\nprocesses: [{pid: 5, gpus: 0, repeat: {every: 10, lives: 10, pid_step: 0}}]\n");
  gpu();
  const std::string before = read("proc/5/stat");
  at(10);
  gpu();
  const std::string after = read("proc/5/stat");
  EXPECT_NE(before, after);
  EXPECT_NE(after.find(" 8641000 "), std::string::npos) << after;
}

}  // namespace
}  // namespace gpuledger::sim_test
