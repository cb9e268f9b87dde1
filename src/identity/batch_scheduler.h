// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "identity/segment_text.h"
#include "model/owner.h"

namespace gpuledger::identity {

class ProcReader;

// A batch scheduler that puts each job in a cgroup of its own, and each step of it in one below. Views point into the
// segments given.
struct BatchScheduler {
  OwnerKind kind;         // of its jobs
  std::string_view word;  // CgroupHome::runtime of a job that is in no container
  // The job whose cgroup this is; empty unless the scheduler itself made the segment.
  std::string_view (*job)(std::string_view segment, const SegmentPlace& place);
  // The step, from a segment just below the job's; empty: none.
  std::string_view (*step)(std::string_view segment);
  // A scope or service of the scheduler itself, with the jobs of others below it.
  bool (*holds_jobs)(std::string_view segment);
  // The number of a job whose cgroup has another id in place of it. Null: there are none.
  std::optional<uint32_t> (ProcReader::*number)(const std::string& cgroup_root, const std::string& step_cgroup) const;
};

// The one table of them.
std::span<const BatchScheduler> batch_schedulers();

}  // namespace gpuledger::identity
