// SPDX-License-Identifier: Apache-2.0
// What must hold of what a node's small files say, whatever is in them: the prolog's file of a Slurm job, passwd, and
// the program's own cgroup.

#include <cstdint>
#include <string_view>

#include "identity/slurm_jobs.h"
#include "identity/user_names.h"
#include "invariant.h"

namespace {

using namespace gpuledger::identity;
using gpuledger::fuzz::all_in;
using gpuledger::fuzz::has_no_control;
using gpuledger::fuzz::require;

constexpr std::string_view kDigits = "0123456789";

void check_name(std::string_view name) {
  require(name.size() <= 64 && has_no_control(name), "a name is short and clean");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const SlurmJob job = parse_slurm_job(text);
  check_name(job.facts.account);
  check_name(job.facts.partition);
  check_name(job.user);
  require(all_in(job.uid, kDigits) && job.uid.size() <= 64, "a uid is a number");
  require(!job.facts.gpus || (*job.facts.gpus > 0 && *job.facts.gpus <= 1024), "as many GPUs as a node has");
  require(!job.facts.started || (*job.facts.started > 0 && *job.facts.started < 1e11), "a time is a time");

  for (const auto& [uid, name] : parse_passwd(text)) {
    require(!uid.empty() && all_in(uid, kDigits), "a uid is a number");
    check_name(name);
  }
  (void)is_on_host(text);
  return 0;
}
