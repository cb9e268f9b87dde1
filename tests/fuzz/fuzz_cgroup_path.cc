// SPDX-License-Identifier: Apache-2.0
// What must hold of parse_cgroup whatever a process's cgroups are called. The first byte says which: even: sentences
// built from the segments that mean something, which random bytes would hardly ever find; odd: the bytes themselves.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "identity/cgroup_path.h"
#include "invariant.h"

namespace {

using gpuledger::fuzz::all_in;
using gpuledger::fuzz::is_printable;
using gpuledger::fuzz::require;
using gpuledger::identity::CgroupHome;
using gpuledger::identity::parse_cgroup;

constexpr std::string_view kHex = "0123456789abcdef";

bool is_pod_uid(std::string_view uid) {
  if (uid.size() == 32) return all_in(uid, kHex);
  if (uid.size() != 36) return false;
  for (size_t i = 0; i < uid.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (uid[i] == '-') || (!dash && !all_in(uid.substr(i, 1), kHex))) return false;
  }
  return true;
}

void check_texts(const CgroupHome& home) {
  require(home.pod_uid.empty() || is_pod_uid(home.pod_uid), "a pod uid is one");
  const bool engine = home.runtime == "containerd" || home.runtime == "crio" || home.runtime == "docker" ||
                      home.runtime == "podman" || home.runtime == "nerdctl" || home.runtime == "cri" ||
                      home.runtime == "container";
  require(!engine || (home.container_id.size() == 64 && all_in(home.container_id, kHex)), "an engine's id is 64 hex");
  require(is_printable(home.container_id) && home.container_id.size() <= 128, "an id is short and printable");
  require(home.job.empty() || home.job.size() <= 14, "a job is short");
  require(is_printable(home.job) && is_printable(home.step) && is_printable(home.user), "labels are clean");
  require(home.unit.size() <= 128 && home.unit.find('\n') == std::string::npos, "a unit is one short line");
}

void check_sense(const CgroupHome& home, std::string_view text) {
  const bool clear = home.verdict == CgroupHome::Verdict::kClear;
  const bool named = !home.pod_uid.empty() || !home.container_id.empty() || !home.job.empty();
  require(clear == !home.runtime.empty(), "a runtime exactly when clear");
  require(clear || !named, "nobody is named in doubt");
  require(!home.ask_kubernetes || !home.container_id.empty(), "nothing to ask for");
  require(home.step.empty() || !home.job.empty(), "a step without a job");
  require(home.step_cgroup.empty() || home.step_cgroup.starts_with('/'), "a path begins with /");
  if (text.find("pod") == std::string_view::npos) require(home.pod_uid.empty(), "a pod from nowhere");
  if (text.find("job_") == std::string_view::npos && text.find("/s") == std::string_view::npos) {
    require(home.job.empty(), "a job from nowhere");
  }
}

bool same(const CgroupHome& a, const CgroupHome& b) {
  return a.verdict == b.verdict && a.runtime == b.runtime && a.container_id == b.container_id &&
         a.pod_uid == b.pod_uid && a.job == b.job && a.step == b.step && a.unit == b.unit && a.user == b.user &&
         a.ask_kubernetes == b.ask_kubernetes;
}

// Whatever a user builds below his own slice, on whichever hierarchy, he gets no pod, no job and no lookup.
void check_below_user(std::string_view text) {
  std::string below;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
    const size_t controllers = line.find(':');
    const size_t colon = controllers == std::string_view::npos ? controllers : line.find(':', controllers + 1);
    const size_t path = colon == std::string_view::npos ? 0 : colon + 1;
    below += path == 0 ? "0::" : line.substr(0, path);
    below += "/user.slice/user-1000.slice";
    below += line.substr(path);
    below += '\n';
  }
  const CgroupHome home = parse_cgroup(below);
  require(home.pod_uid.empty() && home.job.empty() && !home.ask_kubernetes, "a claim from below user.slice");
}

std::string sentence(const uint8_t* bytes, size_t size) {
  static const std::string id(64, 'c');
  static const std::string uid = "11111111-2222-3333-4444-555555555555";
  static const std::vector<std::string> words = {"\n0::",
                                                 "\n3:cpu:",
                                                 "\n1:name=systemd:",
                                                 "/..",
                                                 "/.",
                                                 "/",
                                                 " (deleted)",
                                                 "/user.slice",
                                                 "/user-1000.slice",
                                                 "/user@1000.service",
                                                 "/session-1.scope",
                                                 "/system.slice",
                                                 "/x.service",
                                                 "/machine.slice",
                                                 "/kubepods",
                                                 "/kubepods.slice",
                                                 "/burstable",
                                                 "/besteffort",
                                                 "/pod" + uid,
                                                 "/kubepods-pod" + uid + ".slice",
                                                 "/a-kubepods-burstable-pod" + uid + ".slice",
                                                 ":cri-containerd:" + id,
                                                 "/cri-containerd-" + id,
                                                 "/crio-" + id,
                                                 "/crio-conmon-" + id,
                                                 "/docker-" + id,
                                                 "/libpod-" + id,
                                                 "/nerdctl-" + id,
                                                 "/" + id,
                                                 "/docker",
                                                 "/lxc",
                                                 "/ecs",
                                                 "/garden",
                                                 "/buildkit",
                                                 "/libvirt",
                                                 "/qemu",
                                                 "/kata_overhead",
                                                 "/lxc.payload.a",
                                                 "/machine-qemu\\x2d1.scope",
                                                 "/machine-a\\x2db.scope",
                                                 ".scope",
                                                 ".slice",
                                                 "/slurmstepd.scope",
                                                 "/slurm",
                                                 "/uid_1",
                                                 "/job_7",
                                                 "/job_8",
                                                 "/s0123456789ABC",
                                                 "/step_0",
                                                 "/step_1+2",
                                                 "/pod22222222_2222\\x2d3333_4444_555555555555",
                                                 "a",
                                                 "\x80",
                                                 "-"};
  constexpr size_t kLongestSentence = 20;  // words; longer ones say nothing new and take long
  std::string text;
  for (size_t i = 0; i < std::min(size, kLongestSentence); ++i) text += words[bytes[i] % words.size()];
  return text;
}

void check(std::string_view text) {
  const CgroupHome home = parse_cgroup(text);
  check_texts(home);
  check_sense(home, text);
  if (text.size() % 16 == 0) require(same(home, parse_cgroup(std::string(text))), "the same text reads the same");
  check_below_user(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  if (bytes[0] % 2 == 0) {
    check(sentence(bytes + 1, size - 1));
  } else {
    check({reinterpret_cast<const char*>(bytes + 1), size - 1});
  }
  return 0;
}
