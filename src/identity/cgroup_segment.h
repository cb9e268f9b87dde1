// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "identity/batch_scheduler.h"

namespace gpuledger::identity {

// Parses single segments of a cgroup path. The whole segment must match: names that only contain an id (mount units,
// caches) do not count. Views point into the segments given.

// Any separators of the groups become dashes; 32 bare digits stay as they are.
struct PodUidText {
  std::array<char, 36> text{};
  size_t length = 0;

  bool empty() const { return length == 0; }
  std::string_view view() const { return {text.data(), length}; }
  friend bool operator==(const PodUidText& a, const PodUidText& b) { return a.view() == b.view(); }
};

struct ContainerSegment {
  std::string_view runtime;  // as in CgroupHome::runtime; empty: no container
  std::string_view id;       // empty for conmon and kata: theirs is not a container's id
};

struct PodSegment {
  PodUidText uid;
  ContainerSegment container;  // of "<pod>.slice:<runtime>:<id>", one segment for both
};

std::optional<PodSegment> pod_segment(std::string_view segment, const SegmentPlace& place);
// For direct children of a pod's segment.
ContainerSegment pod_child(std::string_view segment);
// For segments outside of any pod.
ContainerSegment lone_container(std::string_view segment, const SegmentPlace& place);
// An ordinary user may make cgroups below this one.
bool is_user_segment(std::string_view segment);
// "1000" of user-1000.slice and user@1000.service.
std::string_view uid_of_user_segment(std::string_view segment);
// Whether a user without root may run such a container.
bool user_may_run(const ContainerSegment& container);

bool is_service(std::string_view segment);
// A service or scope whose processes may make cgroups below it: all except those of the runtimes and the schedulers,
// which hold the containers and jobs of others.
bool may_be_delegated(std::string_view segment, std::span<const BatchScheduler> schedulers);

// systemd writes "-" in a name as "\x2d".
std::string without_unit_escapes(std::string_view text);

}  // namespace gpuledger::identity
