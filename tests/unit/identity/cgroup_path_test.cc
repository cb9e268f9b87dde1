// SPDX-License-Identifier: Apache-2.0
#include "identity/cgroup_path.h"

#include <gtest/gtest.h>

#include "identity/naming.h"
#include "support/fact_table.h"

namespace gpuledger::identity {

namespace {

using Texts = std::vector<std::string>;
using Verdict = CgroupHome::Verdict;

const std::string kPathId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kOtherContainer(64, 'a');
const std::string kPathUid = "11112222-3333-4444-5555-666677778888";
const std::string kUidUnderscores = "11112222_3333_4444_5555_666677778888";
const std::string kOtherUid = "99992222-3333-4444-5555-666677778888";
const std::string kSlice = "kubepods-burstable-pod" + kUidUnderscores + ".slice";
const std::string kPodSlice = "/kubepods.slice/kubepods-burstable.slice/" + kSlice;

CgroupHome home_of(const std::string& path) {
  return parse_cgroup("0::" + path + "\n");
}

// "runtime container pod", the way most tests here look at it.
std::string read(const std::string& path) {
  const CgroupHome home = home_of(path);
  const auto shown = [](const std::string& text) {
    return text.empty() ? "-" : text == kPathId ? "ID" : text == kPathUid ? "UID" : text;
  };
  return home.runtime + " " + shown(home.container_id) + " " + shown(home.pod_uid);
}

// What both tables ask for, in their order.
Texts read_row(const std::string& cgroup) {
  const CgroupHome home = parse_cgroup(testing::without_table_escapes(cgroup));
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  const std::string runtime = home.verdict == Verdict::kAmbiguous ? "ambiguous"
                              : home.verdict == Verdict::kInvalid ? "invalid"
                                                                  : home.runtime;
  const std::string job = home.job.starts_with('s') ? "sluid:" + home.job : or_dash(home.job);
  return {runtime, or_dash(home.container_id), or_dash(home.pod_uid), job};
}

TEST(ParseCgroup, EveryRowOfTheTable) {
  const auto rows = testing::read_own_table("cgroups.tsv");
  EXPECT_GT(rows.size(), 130u);
  constexpr const char* kPayers[] = {"host", "user", "container", "job", "pod"};
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 7u) << row[0];
    EXPECT_EQ(read_row(row[1]), Texts(row.begin() + 2, row.begin() + 6)) << row[0];
    const auto payer = parse_cgroup(testing::without_table_escapes(row[1])).payer;
    EXPECT_EQ(kPayers[static_cast<size_t>(payer)], row[6]) << row[0];
  }
  for (const auto& row : testing::read_outside_table("cgroups.tsv")) {
    ASSERT_GE(row.size(), 7u) << row[0];
    EXPECT_EQ(read_row(row[2]), Texts(row.begin() + 3, row.begin() + 7)) << row[0];
  }
}

TEST(ParseCgroup, PodsOfTheSystemdDriver) {
  EXPECT_EQ(read(kPodSlice + "/cri-containerd-" + kPathId + ".scope"), "containerd ID UID");
  EXPECT_EQ(read(kPodSlice + "/cri-containerd-" + kPathId), "containerd ID UID") << "without .scope";
  EXPECT_EQ(read("/kubepods.slice/kubepods-pod" + kUidUnderscores + ".slice/crio-" + kPathId + ".scope/container"),
            "crio ID UID");
  EXPECT_EQ(
      read("/a.slice/a-b.slice/a-b-kubepods-besteffort-pod" + kUidUnderscores + ".slice/cri-o-" + kPathId + ".scope"),
      "crio ID UID")
      << "a cgroupRoot of its own";
  EXPECT_EQ(read("/kubepods-pod11112222\\x2d3333_4444-5555\\x2d666677778888.slice/docker-" + kPathId + ".scope"),
            "docker ID UID");
  EXPECT_EQ(read(kPodSlice + "/newruntime-" + kPathId + ".scope"), "cri ID UID");
  EXPECT_EQ(read("/system.slice/containerd.service/" + kSlice + ":cri-containerd:" + kPathId), "containerd ID UID");
  EXPECT_EQ(read("/" + kSlice + ":crio:" + kPathId + ".scope/x"), "crio ID UID");
}

TEST(ParseCgroup, PodsOfTheCgroupfsDriver) {
  EXPECT_EQ(read("/kubepods/pod" + kPathUid + "/" + kPathId), "cri ID UID");
  EXPECT_EQ(read("/kubelet/kubepods/besteffort/pod" + kPathUid + "/crio-" + kPathId), "crio ID UID");
  const CgroupHome fixed = home_of("/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" + kPathId);
  EXPECT_EQ(fixed.pod_uid, "0123456789abcdef0123456789abcdef") << "a static pod";
  EXPECT_EQ(fixed.container_id, kPathId);
}

TEST(ParseCgroup, InThePodAndInNoContainer) {
  EXPECT_EQ(read(kPodSlice), "pod - UID");
  EXPECT_EQ(read(kPodSlice + "/sandbox"), "pod - UID");
  EXPECT_EQ(read(kPodSlice + "/cri-containerd-" + kPathId.substr(1) + ".scope"), "pod - UID");
  EXPECT_EQ(read(kPodSlice + "/x/" + kPathId), "pod - UID") << "only the direct child is the pod's container";
  EXPECT_EQ(read(kPodSlice + "/crio-conmon-" + kPathId + ".scope"), "conmon - UID");
  EXPECT_EQ(read(kPodSlice + "/kata_" + kPathId), "kata - UID");
}

TEST(ParseCgroup, SeenFromACgroupNamespace) {
  EXPECT_EQ(read("/../" + kSlice + "/cri-containerd-" + kPathId + ".scope"), "containerd ID UID");
  EXPECT_EQ(read("/../../pod" + kPathUid + "/" + kPathId), "cri ID UID");
  EXPECT_EQ(read("/../" + kPathId), "container ID -");
  EXPECT_EQ(read("/.."), "host - -");
  EXPECT_EQ(read("/../x/pod" + kPathUid + "/" + kPathId), "container ID -");
  EXPECT_EQ(read("/../../system.slice/docker-" + kPathId + ".scope"), "docker ID -");
}

TEST(ParseCgroup, ClustersInContainers) {
  const std::string pod = "/kubepods/pod" + kPathUid + "/" + kPathId;
  for (const std::string& node :
       Texts{"/docker/" + kOtherContainer, "/system.slice/docker-" + kOtherContainer + ".scope/kubelet",
             "/lxc.payload.k8s", "/machine.slice/libpod-" + kOtherContainer + ".scope/container",
             "/machine.slice/machine-node.scope"}) {
    EXPECT_EQ(read(node + pod), "cri ID UID") << node;
  }
}

TEST(ParseCgroup, TheOutermostPodWins) {
  EXPECT_EQ(read("/kubepods/pod" + kPathUid + "/" + kPathId + "/kubepods/pod" + kOtherUid + "/" + kOtherContainer),
            "cri ID UID");
  EXPECT_EQ(read("/kubepods/pod" + kPathUid + "/kubepods-pod" + kOtherUid + ".slice/cri-containerd-" + kOtherContainer),
            "pod - UID");
  EXPECT_EQ(read("/kubepods/pod" + kPathUid + "/" + kPathId + "/user.slice/user-0.slice/docker/" + kOtherContainer),
            "cri ID UID");
}

TEST(ParseCgroup, NothingBelowAUsersSliceIsAPodOrAJob) {
  for (const std::string& user :
       Texts{"/user.slice", "/user.slice/user-1000.slice/user@1000.service/app.slice", "/../user-1000.slice",
             "/../user-0001.slice", "/../../session-c2.scope", "/user@1000.service"}) {
    for (const std::string& claim :
         Texts{kPodSlice + "/cri-containerd-" + kPathId + ".scope", "/kubepods/pod" + kPathUid + "/" + kPathId,
               "/crio-" + kPathId + ".scope", "/" + kPathId, "/system.slice/slurmstepd.scope/job_7/step_0",
               "/slurm/uid_1000/job_7/step_0", "/kata_" + kPathId, "/" + kSlice + ":cri-containerd:" + kPathId,
               "/some.service"}) {
      const CgroupHome home = home_of(user + claim);
      EXPECT_EQ(home.runtime, "user") << user + claim;
      EXPECT_TRUE(home.pod_uid.empty() && home.container_id.empty() && home.job.empty()) << user + claim;
      EXPECT_FALSE(home.ask_kubernetes);
    }
  }
  EXPECT_EQ(read("/docker/" + kPathId + "/user.slice/kubepods/pod" + kOtherUid + "/" + kOtherContainer), "docker ID -");
}

TEST(ParseCgroup, AUsersOwnContainersAreNotAskedOfKubernetes) {
  const std::string user = "/user.slice/user-1000.slice/user@1000.service/user.slice";
  for (const auto& [leaf, runtime] : {std::pair("libpod-", "podman"), {"nerdctl-", "nerdctl"}, {"docker-", "docker"}}) {
    const CgroupHome home = home_of(user + "/" + leaf + kPathId + ".scope/container");
    EXPECT_EQ(home.runtime, runtime);
    EXPECT_EQ(home.container_id, kPathId);
    EXPECT_EQ(home.user, "1000");
    EXPECT_FALSE(home.ask_kubernetes);
  }
  EXPECT_TRUE(home_of("/docker/" + kPathId).ask_kubernetes);
  EXPECT_TRUE(home_of(kPodSlice + "/crio-" + kPathId).ask_kubernetes);
  EXPECT_FALSE(parse_cgroup("1:name=systemd:/machine.slice/libpod-" + kPathId + ".scope\n2:cpu:" + user + "/libpod-" +
                            kPathId + ".scope\n")
                   .ask_kubernetes);
}

using Payer = CgroupHome::Payer;

TEST(ParseCgroup, TheOutermostThatNobodyBelowCouldHaveMadePays) {
  const std::string pod = "/kubepods/pod" + kPathUid + "/" + kPathId;
  const std::string job = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0";
  const std::string docker = "/docker/" + kOtherContainer;
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";
  const struct {
    std::string path;
    Payer payer;
  } rows[] = {
      {pod, Payer::kPod},
      {"/system.slice/containerd.service/" + kSlice + ":cri-containerd:" + kPathId, Payer::kPod},
      {"/podruntime.slice/snap.microk8s.daemon-containerd.service" + pod, Payer::kPod},
      {pod + docker + job, Payer::kPod},
      {job, Payer::kJob},
      {job + docker, Payer::kJob},
      {job + pod, Payer::kJob},
      {"/slurm/uid_5/job_7/step_0" + pod, Payer::kJob},
      {docker, Payer::kContainer},
      {docker + job, Payer::kContainer},
      {docker + "/slurm/uid_5/job_7", Payer::kContainer},
      {docker + pod, Payer::kContainer},
      {"/system.slice/docker-" + kOtherContainer + ".scope/kubelet.slice" + kPodSlice, Payer::kContainer},
      {"/system.slice/garden.service/garden/ab-cd-12", Payer::kContainer},
      {"/system.slice/systemd-nspawn@box.service/payload" + job, Payer::kContainer},
      {user, Payer::kUser},
      {user + docker, Payer::kUser},
      {user + pod, Payer::kUser},
      {user + job, Payer::kUser},
      {"/system.slice/mine.service", Payer::kHost},
      {"/system.slice/mine.service" + pod, Payer::kHost},
      {"/system.slice/mine.service" + kPodSlice + "/cri-containerd-" + kPathId + ".scope", Payer::kHost},
      {"/system.slice/mine.service" + job, Payer::kHost},
      {"/system.slice/mine.service" + docker, Payer::kHost},
      {"/system.slice/mine.service/libpod-payload-" + kPathId, Payer::kHost},
      {"/system.slice/mine.service/containerd.service/" + kSlice + ":cri-containerd:" + kPathId, Payer::kHost},
      {"/system.slice/run-r1.scope" + job, Payer::kHost},
      {"/system.slice/run-r1.scope" + pod, Payer::kHost},
      {"/", Payer::kHost},
  };
  for (const auto& row : rows) EXPECT_EQ(home_of(row.path).payer, row.payer) << row.path;
  EXPECT_EQ(home_of("/system.slice/mine.service" + pod).unit, "mine.service");
  EXPECT_EQ(home_of("/system.slice/run-r1.scope/theirs.service").unit, "") << "a name below a scope is only a claim";
  EXPECT_EQ(home_of("/system.slice/mine.service/user-0.slice").user, "") << "and so is a user's below a service";
  EXPECT_EQ(home_of("/system.slice/mine.service/user-0.slice").payer, Payer::kHost);
}

TEST(ParseCgroup, APodBelowAContainerTellsOfBoth) {
  const CgroupHome home =
      home_of("/system.slice/docker-" + kOtherContainer + ".scope/kubepods/pod" + kPathUid + "/" + kPathId);
  EXPECT_EQ(home.pod_uid, kPathUid);
  EXPECT_EQ(home.container_id, kPathId);
  EXPECT_EQ(home.node.runtime, "docker");
  EXPECT_EQ(home.node.container_id, kOtherContainer);
  EXPECT_EQ(home.node.cgroup, "/system.slice/docker-" + kOtherContainer + ".scope");
  EXPECT_EQ(home_of("/../../docker/" + kOtherContainer + "/kubepods/pod" + kPathUid + "/" + kPathId).node.cgroup, "")
      << "what stands above is hidden";
  EXPECT_EQ(home_of("/kubepods/pod" + kPathUid + "/" + kPathId).node.runtime, "");
  const CgroupHome torn =
      parse_cgroup("1:a:/docker/" + kOtherContainer + "/kubepods/pod" + kPathUid + "/" + kPathId + "\n2:b:/docker/" +
                   kOtherContainer + "/kubepods/pod" + kOtherUid + "/" + kPathId + "\n");
  EXPECT_EQ(torn.verdict, Verdict::kClear) << "nobody gets out of a bill by claims that contradict each other";
  EXPECT_EQ(torn.payer, Payer::kContainer);
  EXPECT_EQ(torn.container_id, kOtherContainer);
  EXPECT_EQ(torn.pod_uid, "");
}

TEST(LivesBelow, WholeSegmentsOfWholePaths) {
  const std::string own = "3:cpu:/docker/a/b\n0::/x\n";
  for (const char* above : {"/docker", "/docker/a", "/docker/a/b", "/x"}) EXPECT_TRUE(lives_below(own, above)) << above;
  for (const char* other : {"/docker/", "/dock", "/docker/a/b/c", "/docker/b", "/y", ""})
    EXPECT_FALSE(lives_below(own, other)) << other;
  EXPECT_FALSE(lives_below("0::/../docker/a\n", "/docker"));
  EXPECT_FALSE(lives_below("", "/docker"));
}

TEST(ParseCgroup, ContainersWithoutAPod) {
  EXPECT_EQ(read("/docker/" + kPathId + "/docker/" + kOtherContainer), "docker ID -") << "the outermost";
  EXPECT_EQ(read("/docker-" + kPathId), "docker ID -");
  EXPECT_EQ(read("/system.slice/cri-containerd-" + kPathId + ".scope"), "containerd ID -");
  EXPECT_EQ(read("/containerd/" + kPathId), "containerd ID -");
  EXPECT_EQ(read("/system.slice:docker:" + kPathId), "docker ID -");
  EXPECT_EQ(read("/machine.slice/libpod-" + kPathId + ".scope"), "podman ID -");
  EXPECT_EQ(read("/system.slice/x.service/libpod-payload-" + kPathId), "podman ID -");
  EXPECT_EQ(read("/machine.slice/libpod-conmon-" + kPathId + ".scope"), "conmon - -");
  EXPECT_EQ(read("/default/" + kPathId), "container ID -");
  EXPECT_EQ(read("/ecs/some-task/" + kPathId), "ecs ID -");
  EXPECT_EQ(read("/ecs/" + kPathId.substr(0, 32) + "/" + kPathId.substr(0, 32) + "-77"),
            "ecs " + kPathId.substr(0, 32) + "-77 -");
  EXPECT_EQ(read("/system.slice/garden.service/garden/ab-cd-12"), "garden ab-cd-12 -");
  EXPECT_EQ(read("/garden/good/ab-cd-12"), "garden ab-cd-12 -");
  EXPECT_EQ(read("/garden/good"), "host - -");
  EXPECT_EQ(read("/libpod_parent/" + kOtherContainer + "/libpod-" + kPathId), "podman ID -") << "in a pod of podman's";
  EXPECT_EQ(read("/docker/buildkit/abcdefghijklmnopqrstuvwx9"), "buildkit abcdefghijklmnopqrstuvwx9 -");
  EXPECT_EQ(read("/kata_overhead/" + kPathId), "kata - -");
  EXPECT_EQ(read("/kubepods/podnobody/" + kPathId), "container ID -");
}

TEST(ParseCgroup, SystemContainersAndMachines) {
  EXPECT_EQ(read("/lxc.payload.web-1/system.slice/a.service"), "lxc web-1 -");
  EXPECT_EQ(read("/lxc/101/ns"), "lxc 101 -");
  EXPECT_EQ(read("/lxc/" + kPathId), "docker ID -") << "docker's old LXC driver";
  EXPECT_EQ(read("/lxc.monitor.web-1"), "host - -");
  EXPECT_EQ(read("/libvirt/lxc/web"), "libvirt-lxc web -");
  EXPECT_EQ(read("/machine.slice/machine-lxc\\x2d12\\x2dweb.scope"), "libvirt-lxc lxc-12-web -");
  EXPECT_EQ(read("/machine.slice/machine-qemu\\x2d3\\x2dwin.scope/libvirt/vcpu0"), "vm qemu-3-win -");
  EXPECT_EQ(read("/machine/win.libvirt-qemu/emulator"), "vm win -");
  EXPECT_EQ(read("/qemu.slice/104.scope"), "vm 104 -");
  EXPECT_EQ(read("/machine.slice/machine-my\\x2dbox.scope/payload"), "nspawn my-box -");
  EXPECT_EQ(read("/machine.slice/systemd-nspawn@box.service/payload"), "nspawn box -");
  EXPECT_EQ(read("/lxc/a b"), "host - -") << "names that LXC would not take";
}

TEST(ParseCgroup, Slurm) {
  const CgroupHome home = home_of("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0");
  EXPECT_EQ(home.runtime, "slurm");
  EXPECT_EQ(home.job, "4711");
  EXPECT_EQ(home.step, "0");
  EXPECT_EQ(home.step_cgroup, "");
  EXPECT_EQ(home_of("/system.slice/n7_slurmstepd.scope/job_1/step_5+2").step, "5+2");
  EXPECT_EQ(home_of("/slurm/uid_1000/job_12/step_batch/task_0").step, "batch");
  EXPECT_EQ(home_of("/slurm_n7/uid_1000/job_4294967295").job, "4294967295");
  const CgroupHome sluid = home_of("/../../system.slice/slurmstepd.scope/s0123456789ABC/step_extern/slurm");
  EXPECT_EQ(sluid.job, "s0123456789ABC");
  EXPECT_EQ(sluid.step_cgroup, "/system.slice/slurmstepd.scope/s0123456789ABC/step_extern");
  const CgroupHome in_pod =
      home_of(kPodSlice + "/crio-" + kPathId + ".scope/system.slice/slurmstepd.scope/job_3/step_1/user");
  EXPECT_EQ(in_pod.pod_uid, kPathUid);
  EXPECT_EQ(in_pod.job, "3");
  EXPECT_EQ(in_pod.runtime, "crio");
}

TEST(ParseCgroup, NotSlurm) {
  for (const char* path :
       {"/job_4711/step_0", "/system.slice/slurmstepd.scope/x/job_1", "/system.slice/slurmstepd.scope/job_4294967296",
        "/slurm/job_1", "/slurm/uid_x/job_1", "/slurmy/uid_1/job_1", "/system.slice/slurmstepd.scope/job_",
        "/system.slice/slurmstepd.scope/s0123456789ABU", "/system.slice/slurmstepd.scope/s0123456789AB",
        "/system.slice/_slurmstepd.scope/job_1", "/slurm/uid_1/s0123456789ABC", "/system.slice/slurmstepd.scope/job_-1",
        "/slurm/uid_1/job_0007"}) {
    EXPECT_EQ(home_of(path).job, "") << path;
    EXPECT_EQ(home_of(path).runtime, "host") << path;
  }
  EXPECT_EQ(home_of("/slurm/uid_1/job_1/step_none").step, "");
  EXPECT_EQ(home_of("/slurm/uid_1/job_1/step_0+").step, "");
}

// A scheduler is one row: this one puts its jobs in /batch.slice/batch.service/batch-<number>/<step>.
TEST(ParseCgroup, AnotherBatchSchedulerIsOneRow) {
  const BatchScheduler made_up{OwnerKind::kUnknown,  // no kind of its own is needed to tell it from Slurm's
                               "batch",
                               [](std::string_view segment, const SegmentPlace& place) {
                                 const bool own = place.parent == "batch.service" && consume_prefix(segment, "batch-");
                                 return own && is_number(segment) ? segment : std::string_view();
                               },
                               [](std::string_view segment) { return segment; },
                               [](std::string_view segment) { return segment == "batch.service"; },
                               nullptr};
  const BatchScheduler both[] = {batch_schedulers().front(), made_up};
  const std::string path = "/batch.slice/batch.service/batch-7/main";
  const CgroupHome home = parse_cgroup("0::" + path + "/docker/" + kPathId + "\n", both);
  EXPECT_EQ(home.payer, CgroupHome::Payer::kJob);
  EXPECT_EQ(parse_cgroup("0::" + path + "\n", both).runtime, "batch");
  const Owner owner = owner_of(home, NameBook()).owner;
  EXPECT_EQ(owner.kind, OwnerKind::kUnknown);
  EXPECT_EQ(owner.job, "7");
  EXPECT_EQ(owner.step, "main");
  EXPECT_EQ(parse_cgroup("0::/slurm/uid_1/job_7/step_0\n", both).scheduler->kind, OwnerKind::kSlurmJob);
  EXPECT_EQ(parse_cgroup("1:cpu:/slurm/uid_1/job_7\n2:pids:" + path + "\n", both).verdict, Verdict::kAmbiguous)
      << "one number, two schedulers";
  EXPECT_EQ(home_of(path).job, "") << "not in the table";
}

TEST(ParseCgroup, UnitsUsersAndTheHost) {
  EXPECT_EQ(home_of("/system.slice/ollama.service").runtime, "systemd");
  EXPECT_EQ(home_of("/system.slice/system-pg.slice/pg@1.service/x").unit, "pg@1.service");
  EXPECT_EQ(home_of("/user.slice/user-501.slice/session-3.scope").runtime, "user");
  EXPECT_EQ(home_of("/user.slice/user-501.slice/session-3.scope").user, "501");
  EXPECT_EQ(home_of("/system.slice/\xc3(\x1b[1m.service").unit, "\xef\xbf\xbd([1m.service");
  for (const std::string& path :
       Texts{"/", "/init.scope", "/system.slice", "/system.slice/var-lib-" + kPathId + "-merged.mount",
             "/system.slice/run-" + kPathId + ".scope", "/.service", "/" + kPathId + ".scope"}) {
    EXPECT_EQ(read(path), "host - -") << path;
  }
  const CgroupHome mixed = parse_cgroup(
      "5:cpu:/system.slice/ssh.service\n1:name=systemd:/user.slice/user-1000.slice/session-2.scope\n4:memory:/\n");
  EXPECT_EQ(mixed.runtime, "user") << "systemd's own hierarchy knows best";
  EXPECT_EQ(mixed.user, "1000");
}

TEST(ParseCgroup, AlmostAPod) {
  for (const std::string& path :
       Texts{"/kubepods/pod" + kPathUid + "x", "/kubepods/xpod" + kPathUid,
             "/xkubepods-pod" + kUidUnderscores + ".slice", "/-kubepods-pod" + kUidUnderscores + ".slice",
             "/kubepods-pod" + kUidUnderscores, "/kubepods-guess-pod" + kUidUnderscores + ".slice",
             "/kubepods/pod11112222-3333-4444-5555-66667777888", "/kubepods/pod" + kUidUnderscores + "-",
             "/kubepods/pod1111222-23333-4444-5555-666677778888", "/kubepods/podAAAA2222-3333-4444-5555-666677778888",
             "/elsewhere/pod" + kPathUid, "/" + kSlice + ":cri-containerd:" + kPathId.substr(1),
             "/" + kSlice + ".slice", "/" + kSlice + " (deleted)x"}) {
    EXPECT_EQ(home_of(path).pod_uid, "") << path;
    EXPECT_EQ(home_of(path).verdict, Verdict::kClear) << path;
  }
}

TEST(ParseCgroup, IdsOfTheWrongLengthOrCase) {
  for (std::string id :
       Texts{kPathId.substr(1), kPathId + "0", std::string(64, 'A'), std::string(64, 'g'), std::string()}) {
    EXPECT_EQ(read("/system.slice/docker-" + id + ".scope"), "host - -") << id;
    EXPECT_EQ(read("/docker/x" + id), "host - -") << id;
  }
}

TEST(ParseCgroup, Deleted) {
  EXPECT_EQ(read(kPodSlice + "/crio-" + kPathId + ".scope (deleted)"), "crio ID UID");
  EXPECT_EQ(read("/docker/" + kPathId + " (deleted) (deleted)"), "host - -");
  EXPECT_EQ(parse_cgroup("4:cpu:/docker/" + kPathId + " (deleted)\n").container_id, "") << "v1 never says so";
}

TEST(ParseCgroup, WhichOfSeveralLines) {
  const std::string pod = "7:cpu:/kubepods/pod" + kPathUid + "/" + kPathId + "\n";
  const std::string service = "0::/system.slice/containerd.service\n";
  const std::string node = "9:pids:/docker/" + kOtherContainer + "\n";
  const std::string job = "8:memory:/slurm/uid_1/job_5/step_0\n";
  for (const std::string& text :
       Texts{pod + service + node + job, job + node + service + pod, "3:rdma:/\n" + pod + "2:misc:/"}) {
    const CgroupHome home = parse_cgroup(text);
    EXPECT_EQ(home.pod_uid, kPathUid) << text;
    EXPECT_EQ(home.container_id, kPathId) << text;
    EXPECT_EQ(home.job, "") << text;
  }
  EXPECT_EQ(parse_cgroup(service + job + node).container_id, kOtherContainer);
  EXPECT_EQ(parse_cgroup(service + job).job, "5");
  EXPECT_EQ(parse_cgroup("6:x:/\n" + service).runtime, "systemd");
  const CgroupHome twice = parse_cgroup("7:cpu:/kubepods/pod" + kPathUid + "\n1:name=systemd:" + kPodSlice + "/crio-" +
                                        kPathId + ".scope\n2:x:/kubepods/pod" + kPathUid + "/" + kPathId + "\n");
  EXPECT_EQ(twice.runtime, "crio");
  EXPECT_EQ(twice.container_id, kPathId);
}

TEST(ParseCgroup, DisagreementNamesNobody) {
  for (const std::string& text : Texts{"1:cpu:/kubepods/pod" + kPathUid + "/" + kPathId + "\n2:pids:/kubepods/pod" +
                                           kOtherUid + "/" + kPathId + "\n",
                                       "1:cpu:/kubepods/pod" + kPathUid + "/" + kPathId + "\n2:pids:/kubepods/pod" +
                                           kPathUid + "/" + kOtherContainer + "\n",
                                       "1:cpu:/docker/" + kPathId + "\n0::/docker/" + kOtherContainer + "\n",
                                       "1:cpu:/slurm/uid_1/job_1\n2:pids:/slurm/uid_1/job_2\n"}) {
    const CgroupHome home = parse_cgroup(text);
    EXPECT_EQ(home.verdict, Verdict::kAmbiguous) << text;
    EXPECT_TRUE(home.runtime.empty() && home.pod_uid.empty() && home.container_id.empty() && home.job.empty());
    EXPECT_FALSE(home.ask_kubernetes);
  }
  const CgroupHome above = parse_cgroup("1:cpu:/docker/" + kPathId + "\n2:x:/docker/" + kOtherContainer +
                                        "\n3:y:/kubepods/pod" + kPathUid + "/" + kPathId + "\n");
  EXPECT_EQ(above.verdict, Verdict::kClear) << "what a pod's line outranks may disagree";
}

TEST(ParseCgroup, LinesTheKernelNeverWrites) {
  std::string ups;
  for (int i = 0; i < 33; ++i) ups += "/..";
  for (const std::string& text :
       Texts{std::string(), "\n\n", "0", "0:", "0::", "0::docker/" + kPathId, "x::/docker/" + kPathId,
             "::/docker/" + kPathId, "-1:cpu:/docker/" + kPathId, "1:cpu", "0::/docker//" + kPathId,
             "0::/docker/" + kPathId + "/", "0::/docker/./" + kPathId, "0::/docker/../docker/" + kPathId,
             "0::" + ups + "/docker/" + kPathId, "0::/docker/" + kPathId + std::string(1, '\0'),
             "0::/docker/" + kPathId + "/" + std::string(5000, 'x'), "0:: (deleted)"}) {
    const CgroupHome home = parse_cgroup(text);
    EXPECT_EQ(home.verdict, Verdict::kInvalid) << text;
    EXPECT_EQ(home.container_id, "") << text;
    EXPECT_EQ(parse_cgroup(text + "\n3:cpu:/docker/" + kPathId).container_id, kPathId) << "the other lines still count";
  }
  EXPECT_EQ(read(ups.substr(3) + "/docker/" + kPathId), "docker ID -");
}

TEST(ParseCgroup, HugeFiles) {
  std::string text;
  while (text.size() < 70'000) text += "3:cpu:/x\n";
  EXPECT_EQ(parse_cgroup(text + "0::/docker/" + kPathId + "\n").container_id, "");
  EXPECT_EQ(parse_cgroup("0::/docker/" + kPathId + "\n" + text).container_id, kPathId);
  // The cut falls into a line that would read as another, shorter one.
  std::string cut = "2:a:/x\n" + std::string(4096, '\n');
  while (cut.size() < 65'536 - 70) cut += "3:c:/\n";
  cut += "0::/docker/" + kPathId + "/" + std::string(200, 'y') + "\n";
  EXPECT_EQ(parse_cgroup(cut).container_id, "");
}

}  // namespace
}  // namespace gpuledger::identity
