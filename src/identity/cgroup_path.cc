#include "identity/cgroup_path.h"

#include <algorithm>
#include <vector>

namespace gpuledger::identity {
namespace {

constexpr size_t kContainerIdLength = 64;
constexpr size_t kPodUidLength = 36;
constexpr size_t kStaticPodUidLength = 32;  // static pods carry the hash of their manifest

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    if (!segment.empty()) segments.push_back(segment);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return segments;
}

bool consume_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

void consume_suffix(std::string_view& text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
}

// "kubepods-burstable-pod<uid with _>.slice" or "pod<uid>".
std::string pod_uid_of(std::string_view segment) {
  consume_suffix(segment, ".slice");
  if (segment.starts_with("kubepods")) {
    const size_t at = segment.rfind("-pod");
    if (at == std::string_view::npos) return {};
    segment.remove_prefix(at + 1);
  }
  if (!consume_prefix(segment, "pod")) return {};
  std::string uid(segment);
  std::replace(uid.begin(), uid.end(), '_', '-');
  std::string digits = uid;
  std::erase(digits, '-');
  const bool shaped = (uid.size() == kPodUidLength && digits.size() == kStaticPodUidLength) ||
                      (uid.size() == kStaticPodUidLength && digits.size() == kStaticPodUidLength);
  return shaped && is_hex(digits) ? uid : std::string();
}

struct RuntimePrefix {
  std::string_view prefix;
  std::string_view runtime;
};
constexpr RuntimePrefix kRuntimePrefixes[] = {
    {"cri-containerd-", "containerd"}, {"crio-", "crio"}, {"docker-", "docker"}, {"libpod-", "podman"}};

void read_container(std::string_view segment, std::string_view parent, CgroupHome& home) {
  consume_suffix(segment, ".scope");
  std::string_view runtime = parent == "docker" ? "docker" : parent == "libpod_parent" ? "podman" : "";
  for (const RuntimePrefix& row : kRuntimePrefixes) {
    if (consume_prefix(segment, row.prefix)) {
      runtime = row.runtime;
      break;
    }
  }
  if (segment.size() != kContainerIdLength || !is_hex(segment)) return;
  if (runtime.empty() && home.pod_uid.empty()) return;  // 64 hex digits alone prove nothing
  home.container_id = segment;
  home.runtime = runtime;
}

void read_slurm(std::string_view segment, CgroupHome& home) {
  if (home.slurm_job.empty()) {
    if (consume_prefix(segment, "job_") && is_number(segment)) home.slurm_job = segment;
  } else if (home.slurm_step.empty() && consume_prefix(segment, "step_") && segment.size() <= 32) {
    home.slurm_step = segment;
  }
}

CgroupHome parse_path(std::string_view path) {
  CgroupHome home;
  bool kubepods = false;
  bool slurm = false;
  std::string_view parent;
  for (std::string_view segment : segments_of(path)) {
    const bool nobody_yet = home.pod_uid.empty() && home.container_id.empty() && home.slurm_job.empty();
    if (segment == "user.slice" && nobody_yet) return home;
    kubepods |= segment.starts_with("kubepods");
    slurm |= segment == "slurm" || segment == "slurmstepd.scope" || segment.ends_with("_slurmstepd.scope");
    if (slurm) read_slurm(segment, home);
    if (home.container_id.empty()) {
      if (kubepods && home.pod_uid.empty()) home.pod_uid = pod_uid_of(segment);
      read_container(segment, parent, home);
    }
    parent = segment;
  }
  return home;
}

}  // namespace

CgroupHome parse_cgroup(std::string_view text) {
  CgroupHome best;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const size_t controllers = line.find(':');
    const size_t path = controllers == std::string_view::npos ? controllers : line.find(':', controllers + 1);
    if (path != std::string_view::npos) {
      CgroupHome home = parse_path(line.substr(path + 1));
      const bool says_more = (best.pod_uid.empty() && !home.pod_uid.empty()) ||
                             (best.container_id.empty() && !home.container_id.empty()) ||
                             (best.slurm_job.empty() && !home.slurm_job.empty());
      if (says_more) best = std::move(home);
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return best;
}

}  // namespace gpuledger::identity
