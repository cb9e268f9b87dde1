// SPDX-License-Identifier: Apache-2.0
#include "identity/cgroup_segment.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace gpuledger::identity {
namespace {

constexpr size_t kContainerIdLength = 64;
constexpr size_t kLongestSegmentName = 128;
constexpr std::string_view kDashEscape = "\\x2d";

constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');  // runtimes and Kubernetes print lower case
}
constexpr bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool is_name_character(char c) {
  return is_digit(c) || is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' || c == ':' ||
         c == '@' || c == '+';
}

template <typename Predicate>
bool all_of(std::string_view text, Predicate predicate) {
  return std::all_of(text.begin(), text.end(), predicate);
}

bool is_container_id(std::string_view text) {
  return text.size() == kContainerIdLength && all_of(text, is_hex_digit);
}
// Names chosen by people: LXC, machines, garden. '\' for systemd's escapes.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestSegmentName &&
         all_of(text, [](char c) { return is_name_character(c) || c == '\\'; });
}

std::optional<PodUidText> parse_uid(std::string_view text) {
  PodUidText uid;
  if (text.size() == 32 && all_of(text, is_hex_digit)) {
    uid.length = text.copy(uid.text.data(), text.size());
    return uid;
  }
  for (size_t group : {8, 4, 4, 4, 12}) {
    if (uid.length != 0) {
      if (!consume_prefix(text, "-") && !consume_prefix(text, "_") && !consume_prefix(text, kDashEscape)) return {};
      uid.text[uid.length++] = '-';
    }
    if (text.size() < group || !all_of(text.substr(0, group), is_hex_digit)) return {};
    uid.length += text.copy(uid.text.data() + uid.length, group);
    text.remove_prefix(group);
  }
  if (!text.empty()) return {};
  return uid;
}

// "kubepods", "kubelet-kubepods", "a-b-kubepods", with or without QoS class: the parents of pod slices.
bool is_pods_slice(std::string_view name) {
  if (!consume_suffix(name, "-besteffort")) consume_suffix(name, "-burstable");
  if (!consume_suffix(name, "kubepods")) return false;
  if (name.empty()) return true;
  if (!consume_suffix(name, "-") || name.empty() || name.front() == '-') return false;
  return is_name(name) && name.find("--") == std::string_view::npos && !name.ends_with('-');
}

struct RuntimeWord {
  std::string_view word;
  std::string_view runtime;
};
constexpr RuntimeWord kRuntimeWords[] = {{"cri-containerd", "containerd"},
                                         {"containerd", "containerd"},
                                         {"crio", "crio"},
                                         {"cri-o", "crio"},
                                         {"docker", "docker"},
                                         {"nerdctl", "nerdctl"},
                                         {"libpod", "podman"},
                                         {"libpod-payload", "podman"},
                                         {"crio-conmon", "conmon"},
                                         {"libpod-conmon", "conmon"}};

std::string_view runtime_of_word(std::string_view word) {
  const auto* row = std::find_if(std::begin(kRuntimeWords), std::end(kRuntimeWords),
                                 [&](const RuntimeWord& entry) { return entry.word == word; });
  return row == std::end(kRuntimeWords) ? std::string_view() : row->runtime;
}

ContainerSegment container_of(std::string_view runtime, std::string_view id) {
  if (runtime == "conmon") id = {};  // the container's monitor: on the host, same id
  return {runtime, id};
}

// "<word><separator><64 hex>[.scope]". The word ends where the id begins, so it may contain the separator.
struct WordAndId {
  std::string_view word;
  std::string_view id;
};
std::optional<WordAndId> split_word_and_id(std::string_view segment, char separator) {
  consume_suffix(segment, ".scope");
  if (segment.size() < kContainerIdLength + 2) return {};
  const size_t at = segment.size() - kContainerIdLength;
  if (segment[at - 1] != separator || !is_container_id(segment.substr(at))) return {};
  return WordAndId{segment.substr(0, at - 1), segment.substr(at)};
}

// An unknown runtime is still the kubelet's: only the kubelet makes children of a pod's cgroup.
std::string_view runtime_in_pod(std::string_view word) {
  const std::string_view known = runtime_of_word(word);
  if (!known.empty()) return known;
  if (word.ends_with("conmon")) return "conmon";
  const bool plausible =
      is_lower(word.front()) && all_of(word, [](char c) { return is_lower(c) || is_digit(c) || c == '-' || c == '_'; });
  return plausible ? "cri" : std::string_view();
}

ContainerSegment bare_id(std::string_view id, const SegmentPlace& place) {
  if (place.parent == "libpod_parent") return {};  // a podman pod; its containers are below
  if (place.parent == "docker" || place.parent == "lxc") return {"docker", id};  // docker once ran LXC below it
  if (place.parent == "containerd") return {"containerd", id};
  if (place.parent == "buildkit") return {"buildkit", id};
  return {place.below_ecs ? "ecs" : "container", id};
}

// Fargate: "<32 hex of the task>-<number>".
bool is_fargate_id(std::string_view segment) {
  constexpr size_t kTaskIdLength = 32;
  return segment.size() > kTaskIdLength + 1 && segment.size() <= kTaskIdLength + 21 &&
         all_of(segment.substr(0, kTaskIdLength), is_hex_digit) && segment[kTaskIdLength] == '-' &&
         is_number(segment.substr(kTaskIdLength + 1));
}

// "garden/<name>" or, with its CPU throttling, "garden/good/<name>" and "garden/bad/<name>".
bool is_garden_id(std::string_view segment, const SegmentPlace& place) {
  const auto is_throttle = [](std::string_view text) { return text == "good" || text == "bad"; };
  const bool below = place.parent == "garden" || (place.grandparent == "garden" && is_throttle(place.parent));
  return below && !is_throttle(segment) && is_name(segment);
}

bool is_build_id(std::string_view segment) {
  return segment.size() >= 16 && segment.size() <= 32 &&
         all_of(segment, [](char c) { return is_lower(c) || is_digit(c); });
}

ContainerSegment system_container(std::string_view segment, const SegmentPlace& place) {
  const auto named = [](std::string_view runtime, std::string_view name) {
    return is_name(name) ? ContainerSegment{runtime, name} : ContainerSegment{};
  };
  std::string_view name = segment;
  if (consume_prefix(name, "lxc.payload.")) return named("lxc", name);
  if (place.grandparent == "libvirt" && place.parent == "lxc") return named("libvirt-lxc", segment);
  if (place.grandparent == "libvirt" && place.parent == "qemu") return named("vm", segment);
  if (place.parent == "lxc" || place.parent == "lxc.payload") return named("lxc", segment);
  if (consume_suffix(name, ".libvirt-lxc")) return named("libvirt-lxc", name);
  if (consume_suffix(name, ".libvirt-qemu")) return named("vm", name);
  if (place.parent == "qemu.slice" && consume_suffix(name, ".scope")) return named("vm", name);
  if (consume_prefix(name, "systemd-nspawn@") && consume_suffix(name, ".service")) return named("nspawn", name);
  name = segment;
  if (!consume_prefix(name, "machine-") || !consume_suffix(name, ".scope")) return {};
  for (std::string_view dash : {std::string_view("-"), kDashEscape}) {
    std::string_view rest = name;
    if (consume_prefix(rest, "lxc") && rest.starts_with(dash)) return named("libvirt-lxc", name);
    rest = name;
    if (consume_prefix(rest, "qemu") && rest.starts_with(dash)) return named("vm", name);
  }
  return place.parent == "machine.slice" ? named("nspawn", name) : ContainerSegment{};
}

}  // namespace

std::optional<PodSegment> pod_segment(std::string_view segment, const SegmentPlace& place) {
  if (std::string_view uid_text = segment; consume_prefix(uid_text, "pod")) {
    const bool at_home =
        place.after_up || place.parent == "kubepods" || place.parent == "besteffort" || place.parent == "burstable";
    const auto uid = at_home ? parse_uid(uid_text) : std::nullopt;
    return uid ? std::optional(PodSegment{*uid, {}}) : std::nullopt;
  }
  const size_t pod_at = segment.rfind("-pod");
  constexpr std::string_view kSlice = ".slice";
  const size_t slice_at = segment.find(kSlice, pod_at == std::string_view::npos ? 0 : pod_at);
  if (pod_at == std::string_view::npos || slice_at == std::string_view::npos) return {};
  if (!is_pods_slice(segment.substr(0, pod_at))) return {};
  const size_t uid_at = pod_at + 4;
  const auto uid = parse_uid(segment.substr(uid_at, slice_at - uid_at));
  if (!uid) return {};
  std::string_view rest = segment.substr(slice_at + kSlice.size());
  if (rest.empty()) return PodSegment{*uid, {}};
  // If only the kubelet uses the systemd driver, containerd uses "slice:runtime:id" for one name.
  if (!consume_prefix(rest, ":")) return {};
  const auto parts = split_word_and_id(rest, ':');
  const std::string_view runtime = parts ? runtime_in_pod(parts->word) : std::string_view();
  if (runtime.empty()) return {};
  return PodSegment{*uid, container_of(runtime, parts->id)};
}

ContainerSegment pod_child(std::string_view segment) {
  if (is_container_id(segment)) return {"cri", segment};
  if (segment.starts_with("kata_")) return {"kata", {}};
  const auto parts = split_word_and_id(segment, '-');
  return parts ? container_of(runtime_in_pod(parts->word), parts->id) : ContainerSegment{};
}

ContainerSegment lone_container(std::string_view segment, const SegmentPlace& place) {
  if (is_garden_id(segment, place)) return {"garden", segment};
  if (is_container_id(segment)) return bare_id(segment, place);
  if (const auto parts = split_word_and_id(segment, '-')) {
    if (parts->word == "kata_overhead") return {"kata", {}};
    if (const auto runtime = runtime_of_word(parts->word); !runtime.empty()) return container_of(runtime, parts->id);
  }
  if (const auto parts = split_word_and_id(segment, ':')) {
    const size_t colon = parts->word.rfind(':');
    const std::string_view word = colon == std::string_view::npos ? parts->word : parts->word.substr(colon + 1);
    if (const auto runtime = runtime_of_word(word); !runtime.empty()) return container_of(runtime, parts->id);
  }
  if (segment == "kata_overhead" || segment == "kata_overhead.slice") return {"kata", {}};
  if (segment.starts_with("kata_") && is_container_id(segment.substr(5))) return {"kata", {}};
  if (place.below_ecs && is_fargate_id(segment)) return {"ecs", segment};
  if (place.parent == "buildkit" && is_build_id(segment)) return {"buildkit", segment};
  return system_container(segment, place);
}

bool is_user_segment(std::string_view segment) {
  return segment == "user.slice" || (segment.starts_with("user-") && segment.ends_with(".slice")) ||
         (segment.starts_with("user@") && segment.ends_with(".service")) ||
         (segment.starts_with("session-") && segment.ends_with(".scope"));
}

std::string_view uid_of_user_segment(std::string_view segment) {
  std::string_view uid = segment;
  const std::string_view suffix = uid.starts_with("user-") ? ".slice" : ".service";
  if (!consume_prefix(uid, "user-") && !consume_prefix(uid, "user@")) return {};
  return consume_suffix(uid, suffix) && is_uint32(uid) ? uid : std::string_view();
}

bool user_may_run(const ContainerSegment& container) {
  for (std::string_view runtime : {"podman", "nerdctl", "docker", "lxc", "buildkit", "conmon"}) {
    if (container.runtime == runtime) return true;
  }
  return false;
}

bool is_service(std::string_view segment) {
  constexpr std::string_view kService = ".service";
  return segment.size() > kService.size() && segment.ends_with(kService);
}

bool may_be_delegated(std::string_view segment, std::span<const BatchScheduler> schedulers) {
  for (const BatchScheduler& scheduler : schedulers) {
    if (scheduler.holds_jobs(segment)) return false;
  }
  if (segment.ends_with(".scope")) return segment != "init.scope";
  if (!is_service(segment)) return false;
  for (std::string_view known :
       {"crio.service", "docker.service", "podman.service", "buildkit.service", "garden.service", "k3s.service",
        "k3s-agent.service", "rke2-server.service", "rke2-agent.service", "k0scontroller.service", "k0sworker.service",
        "snap.microk8s.daemon-kubelite.service"}) {
    if (segment == known) return false;
  }
  // Distributions and bundles add prefixes to these.
  for (std::string_view end : {"containerd.service", "dockerd.service", "kubelet.service"}) {
    if (segment.ends_with(end)) return false;
  }
  return true;
}

std::string without_unit_escapes(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    unsigned code = 0;
    const std::string_view escape = text.substr(i, 4);
    if (escape.size() == 4 && escape.starts_with("\\x") &&
        std::from_chars(escape.data() + 2, escape.data() + 4, code, 16).ptr == escape.data() + 4) {
      if (code > 0x7e || !is_name_character(static_cast<char>(code))) return std::string(text);
      out.push_back(static_cast<char>(code));
      i += escape.size();
    } else {
      out.push_back(text[i++]);
    }
  }
  return out;
}

}  // namespace gpuledger::identity
