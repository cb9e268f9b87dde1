// SPDX-License-Identifier: Apache-2.0
#include "identity/batch_scheduler.h"

#include "identity/proc_reader.h"

namespace gpuledger::identity {
namespace {

bool is_slurm_scope(std::string_view segment) {
  return segment == "slurmstepd.scope" || (segment.ends_with("_slurmstepd.scope") && segment.front() != '_');
}

bool holds_slurm_jobs(std::string_view segment) {
  return is_slurm_scope(segment) || segment == "slurmd.service";
}

// "4711" or a SLUID.
std::string_view slurm_job(std::string_view segment, const SegmentPlace& place) {
  std::string_view number = segment;
  const bool numbered = consume_prefix(number, "job_") && is_uint32(number);
  if (is_slurm_scope(place.parent)) {
    constexpr size_t kSluidLength = 14;
    constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";  // Crockford's base 32
    const bool sluid = segment.size() == kSluidLength && segment.front() == 's' &&
                       segment.find_first_not_of(kAlphabet, 1) == std::string_view::npos;
    return numbered ? number : sluid ? segment : std::string_view();
  }
  std::string_view uid = place.parent;
  const bool below_user_of_slurm = (place.grandparent == "slurm" || place.grandparent.starts_with("slurm_")) &&
                                   consume_prefix(uid, "uid_") && is_number(uid);
  return below_user_of_slurm && numbered ? number : std::string_view();
}

std::string_view slurm_step(std::string_view segment) {
  if (!consume_prefix(segment, "step_")) return {};
  for (std::string_view word : {"batch", "extern", "interactive", "TBD"}) {
    if (segment == word) return segment;
  }
  const size_t plus = segment.find('+');
  const bool component_shaped = plus == std::string_view::npos || is_uint32(segment.substr(plus + 1));
  return is_uint32(segment.substr(0, plus)) && component_shaped ? segment : std::string_view();
}

constexpr BatchScheduler kSchedulers[] = {
    {OwnerKind::kSlurmJob, "slurm", slurm_job, slurm_step, holds_slurm_jobs, &ProcReader::read_slurm_job},
};

}  // namespace

std::span<const BatchScheduler> batch_schedulers() {
  return kSchedulers;
}

}  // namespace gpuledger::identity
