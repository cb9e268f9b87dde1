// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/identity.h"

namespace gpuledger::identity {

// What the prolog knows of a job: deploy/slurm/prolog.sh writes it in lines, account=NAME.
struct SlurmJob {
  JobFacts facts;
  std::string uid;
  std::string user;            // the uid's name
  std::vector<uint32_t> gpus;  // given to it, by Slurm's numbers
};

// Unknown keys and values that make no sense are left out.
SlurmJob parse_slurm_job(std::string_view text);

// GPUs in a list of numbers, "0,2-3". Empty: none, or not such a list.
std::vector<uint32_t> parse_gpu_list(std::string_view list);

// The files that the site's prolog writes and its epilog removes, one for each job on this node. Only a file counts
// that no user can have written: a job's environment and its cgroup say no account, or one that the user chose.
class SlurmJobs {
 public:
  SlurmJobs() = default;  // none
  explicit SlurmJobs(std::string folder) : folder_(std::move(folder)) {}

  static bool may_have(const Owner& owner) { return owner.kind == OwnerKind::kSlurmJob; }
  // kNotFound: no such folder. kPermission: as below.
  Status check() const;
  // kNotFound: no such file, folder or job number. kPermission: the file or its folder may be written by others than
  // root and the user of this program, so what is in it is not believed.
  Result<SlurmJob> read(const std::string& job) const;
  // All jobs on this node whose file is believed.
  std::map<std::string, SlurmJob> read_all() const;

 private:
  std::string folder_;
};

}  // namespace gpuledger::identity
