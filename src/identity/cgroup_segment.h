// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace gpuledger::identity {

// What single segments of a cgroup path say. Always the whole segment is matched: names that merely contain an id
// (mount units, caches) are nobody's. Views point into the segments given.

// Dashes between the groups, whatever stood there; 32 bare digits stay as they are.
struct PodUidText {
  std::array<char, 36> text{};
  size_t length = 0;

  bool empty() const { return length == 0; }
  std::string_view view() const { return {text.data(), length}; }
  friend bool operator==(const PodUidText& a, const PodUidText& b) { return a.view() == b.view(); }
};

struct ContainerSegment {
  std::string_view runtime;  // the words of CgroupHome::runtime; empty: no container
  std::string_view id;       // empty for conmon and kata: what they carry is no container's id
};

struct PodSegment {
  PodUidText uid;
  ContainerSegment container;  // of "<pod>.slice:<runtime>:<id>", one segment for both
};

// Where a segment stands: some names mean something below certain others only.
struct SegmentPlace {
  std::string_view parent;
  std::string_view grandparent;
  bool after_up = false;  // first one after "/..", its parents are hidden
  bool below_ecs = false;
};

std::optional<PodSegment> pod_segment(std::string_view segment, const SegmentPlace& place);
// For the direct child of a pod's segment.
ContainerSegment pod_child(std::string_view segment);
// For segments outside of any pod.
ContainerSegment lone_container(std::string_view segment, const SegmentPlace& place);
// An ordinary user may make cgroups below this one.
bool is_user_segment(std::string_view segment);
// "1000" of user-1000.slice and user@1000.service.
std::string_view uid_of_user_segment(std::string_view segment);
// Whether such a container may be one that a user runs without root.
bool user_may_run(const ContainerSegment& container);

bool is_service(std::string_view segment);
// A service or a scope whose own people may make cgroups below it: every one but those of the runtimes and of Slurm,
// which put others' containers and jobs there.
bool may_be_delegated(std::string_view segment);

// "4711" or a SLUID; empty unless Slurm itself put the segment there.
std::string_view slurm_job(std::string_view segment, const SegmentPlace& place);
std::string_view slurm_step(std::string_view segment);

// systemd writes "-" in a name as "\x2d".
std::string without_unit_escapes(std::string_view text);

}  // namespace gpuledger::identity
