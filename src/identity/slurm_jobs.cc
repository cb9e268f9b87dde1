// SPDX-License-Identifier: Apache-2.0
#include "identity/slurm_jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/quote.h"
#include "base/text.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLargestJobFile = 4096;
constexpr size_t kLongestSlurmName = 64;
constexpr uint32_t kMostGpus = 1024;
constexpr size_t kMostJobs = 1000;
constexpr double kLatestStart = 1e11;

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// The entry itself and not what a link points to.
Status check_trusted(const std::string& path, mode_t type) {
  struct stat entry {};
  if (::lstat(path.c_str(), &entry) != 0) return errno_error("cannot read", path, errno);
  const bool others_write = (entry.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool trusted = entry.st_uid == 0 || entry.st_uid == ::geteuid();
  if ((entry.st_mode & S_IFMT) == type && trusted && !others_write) return ok_status();
  return Error{Code::kPermission, path + " may be written by others than root"};
}

}  // namespace

std::vector<uint32_t> parse_gpu_list(std::string_view list) {
  std::vector<uint32_t> gpus;
  while (!list.empty()) {
    std::string_view item = take_until(list, ',');
    const auto first = number<uint32_t>(take_until(item, '-'));
    const auto last = item.empty() ? first : number<uint32_t>(item);
    if (!first || !last || *last < *first || *last >= kMostGpus) return {};
    for (uint32_t gpu = *first; gpu <= *last; ++gpu) gpus.push_back(gpu);
    if (gpus.size() > kMostGpus) return {};
  }
  return gpus;
}

SlurmJob parse_slurm_job(std::string_view text) {
  SlurmJob job;
  while (!text.empty()) {
    std::string_view value = take_until(text, '\n');
    const std::string_view key = take_until(value, '=');
    if (key == "account") job.facts.account = clean_text(value, kLongestSlurmName);
    if (key == "partition") job.facts.partition = clean_text(value, kLongestSlurmName);
    if (key == "gpus") {
      job.gpus = parse_gpu_list(value);
      if (!job.gpus.empty()) job.facts.gpus = static_cast<uint32_t>(job.gpus.size());
    }
    if (key == "user") job.user = clean_text(value, kLongestSlurmName);
    if (const auto uid = number<uint32_t>(value); key == "uid" && uid) job.uid = std::to_string(*uid);
    if (key == "start") {
      const auto start = number<double>(value);
      if (start && *start > 0 && *start < kLatestStart) job.facts.started = start;
    }
  }
  return job;
}

Status SlurmJobs::check() const {
  return check_trusted(folder_, S_IFDIR);
}

Result<SlurmJob> SlurmJobs::read(const std::string& job) const {
  // A number or a SLUID: nothing that leads out of the folder.
  const bool plain =
      !job.empty() &&
      job.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos;
  if (folder_.empty() || !plain) return Error{Code::kNotFound, "no file of job " + in_quotes(job)};
  const std::string path = folder_ + "/" + job;
  // In this order: in a folder that only root may write, a file stays what it was at the check.
  GL_TRY_STATUS(check());
  GL_TRY_STATUS(check_trusted(path, S_IFREG));
  GL_TRY(text, read_file(path, kLargestJobFile));
  return parse_slurm_job(text);
}

std::map<std::string, SlurmJob> SlurmJobs::read_all() const {
  std::map<std::string, SlurmJob> jobs;
  if (folder_.empty() || !check().ok()) return jobs;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder_, failed), end;
       !failed && entry != end && jobs.size() < kMostJobs; entry.increment(failed)) {
    std::string name = entry->path().filename();
    if (auto job = read(name); job.ok()) jobs.emplace(std::move(name), *std::move(job));
  }
  return jobs;
}

}  // namespace gpuledger::identity
