// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "app/doctor/doctor.h"
#include "app/runtime/state_file.h"
#include "base/file.h"
#include "base/listen_address.h"
#include "http/listener.h"
#include "identity/slurm_jobs.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;

constexpr size_t kLargestCommandLine = 64 << 10;
constexpr auto kOldTextfile = std::chrono::minutes(5);
constexpr int kMostProcesses = 100'000;

fs::path folder_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// Tries it: this finds rights, read-only mounts, quotas and missing folders.
Status try_to_write_beside(const std::string& file) {
  std::string probe = (folder_of(file) / (".gpu-ledger-doctor." + std::to_string(::getpid()))).string();
  const Status written = write_file_atomically(probe, "", 0600, Flush::kToSystem);
  if (written.ok()) ::unlink(probe.c_str());
  return written;
}

// Debian's package has its own name and folder.
constexpr std::string_view kDebianName = "prometheus-node-exporter";
constexpr const char* kDebianFolder = "/var/lib/prometheus/node-exporter";

// The folder that a running node_exporter reads, empty: none. Nothing: no node_exporter found.
std::optional<std::string> folder_of_node_exporter(const std::string& proc_root) {
  constexpr std::string_view kFlag = "--collector.textfile.directory";
  std::error_code failed;
  int seen = 0;
  for (fs::directory_iterator entry(proc_root, failed), end; !failed && entry != end && seen < kMostProcesses;
       entry.increment(failed), ++seen) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto line = read_file(entry->path() / "cmdline", kLargestCommandLine);
    if (!line.ok()) continue;
    const std::string program = fs::path(line->c_str()).filename().string();
    if (program != "node_exporter" && program != "node-exporter" && program != kDebianName) continue;
    // "=VALUE" or the next argument.
    if (const size_t at = line->find(kFlag); at != std::string::npos) {
      return line->c_str() + std::min(at + kFlag.size() + 1, line->size());
    }
    return program == kDebianName ? kDebianFolder : "";
  }
  return std::nullopt;
}

std::optional<Finding> textfile_trouble(const Config& config) {
  const std::string& path = config.textfile;
  if (const Status written = try_to_write_beside(path); !written.ok()) {
    return Finding{Level::kFail, "textfile",
                   written.error().message + ": let this user write to the folder, and mount it writable"};
  }
  std::error_code failed;
  if (fs::is_directory(path, failed))
    return Finding{Level::kFail, "textfile", path + " is a folder: name a file in it, " + path + "/gpu-ledger.prom"};
  if (!path.ends_with(".prom"))
    return Finding{Level::kFail, "textfile", path + " does not end in .prom: node_exporter reads no other files"};
  struct stat folder {};
  if (::stat(folder_of(path).c_str(), &folder) == 0 && (folder.st_mode & 0005) != 0005) {
    return Finding{Level::kWarn, "textfile",
                   folder_of(path).string() + " is closed to other users, and node_exporter is one: chmod o+rx"};
  }
  const auto read = folder_of_node_exporter(config.proc_root);
  if (read && (read->empty() || fs::weakly_canonical(*read, failed) != fs::weakly_canonical(folder_of(path), failed))) {
    return Finding{Level::kWarn, "textfile",
                   "node_exporter reads " + (read->empty() ? "no folder" : *read) + ", not " +
                       folder_of(path).string() +
                       ": start it with --collector.textfile.directory=" + folder_of(path).string()};
  }
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(path, failed);
  if (!failed && age > kOldTextfile) {
    const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(age).count();
    return Finding{Level::kWarn, "textfile",
                   path + " was last written " + std::to_string(minutes) +
                       " minutes ago: is gpu-ledger serve running, or the CronJob of gpu-ledger once?"};
  }
  return std::nullopt;
}

}  // namespace

Findings check_proc(const identity::ProcReader& proc) {
  if (const Status readable = proc.check(); !readable.ok()) return {{Level::kFail, "proc", readable.error().message}};
  const identity::ProcView view = proc.read_view();
  if (!view.warning.empty()) {
    return {{view.host_pids ? Level::kWarn : Level::kFail, view.host_pids ? "proc" : "pid namespace", view.warning}};
  }
  return {{Level::kOk, "proc", "shows every process of the host"}};
}

Findings check_slurm_jobs(const Config& config) {
  const Status believed = identity::SlurmJobs(config.slurm_job_dir).check();
  if (believed.ok()) return {{Level::kOk, "slurm jobs", "accounts from the prolog's files in " + config.slurm_job_dir}};
  if (believed.error().code == Code::kNotFound) return {};
  return {{Level::kWarn, "slurm jobs",
           believed.error().message + ", so jobs have no account: it must be a folder of root with mode 0755"}};
}

Findings check_textfile(const Config& config) {
  if (config.textfile.empty()) return {{Level::kOk, "textfile", "not asked for"}};
  if (auto trouble = textfile_trouble(config)) return {*std::move(trouble)};
  return {{Level::kOk, "textfile",
           config.textfile +
               " can be written; node_exporter needs "
               "--collector.textfile.directory=" +
               folder_of(config.textfile).string()}};
}

Findings check_state_file(const Config& config) {
  const std::string& path = config.state_file;
  if (path.empty()) {
    return {{Level::kOk, "state file", "none: counters start at 0 with the program; --state-file keeps them"}};
  }
  if (const Status written = try_to_write_beside(path); !written.ok()) {
    return {{Level::kFail, "state file",
             written.error().message + ": let this user write to the folder; in a pod, mount a hostPath"}};
  }
  struct stat file {};
  for (const std::string& each : {path, recent_state_path(path)}) {
    if (::stat(each.c_str(), &file) != 0) continue;
    if (!S_ISREG(file.st_mode)) return {{Level::kFail, "state file", each + " is no file: choose another path"}};
    if (::access(each.c_str(), R_OK | W_OK) != 0)
      return {{Level::kFail, "state file", each + " belongs to another user: chown it, or remove it"}};
  }
  return {{Level::kOk, "state file", path + " can be written"}};
}

Findings check_listen_addresses(const Config& config) {
  Findings findings;
  for (const std::string& text : config.listen_addresses) {
    const auto address = parse_listen_address(text);
    if (!address.ok()) continue;  // refused while reading the settings
    const auto listener = http::Listener::open(*address);
    if (listener.ok()) {
      findings.push_back({Level::kOk, "listen address", text + " is free"});
    } else if (listener.error().message.find("in use") != std::string::npos) {
      findings.push_back(
          {Level::kWarn, "listen address",
           text + " is in use: fine if by gpu-ledger itself, else choose another with --listen-address"});
    } else {
      findings.push_back({Level::kFail, "listen address", listener.error().message});
    }
  }
  return findings;
}

}  // namespace gpuledger::app
