// SPDX-License-Identifier: Apache-2.0
#include "app/push/push_queue.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/log.h"

namespace gpuledger::app {
namespace {

constexpr std::string_view kPrefix = "block-";
constexpr std::string_view kSuffix = ".push";
constexpr size_t kRandomPart = 7;  // ".XXXXXX", of a temporary file
constexpr size_t kLargestFile = 64 << 20;
constexpr int kMostFailedReads = 10;
constexpr uint64_t kDiskUnit = 4096;  // what a small file really takes

// A file is this line and the body. A disk that lost power may have kept any part of it.
std::string head_of(std::string_view body) {
  const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return fmt::format("gpu-ledger push 1 {:08x}\n", sum);
}

uint64_t on_disk(uint64_t bytes) {
  return (bytes + kDiskUnit - 1) / kDiskUnit * kDiskUnit;
}

template <typename Number>
bool take_number(std::string_view& text, char end, Number& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest == text.data() + text.size() || *rest != end) return false;
  text.remove_prefix(static_cast<size_t>(rest - text.data()) + 1);
  return true;
}

Status prepare(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    const int number = errno;
    const Error error = errno_error("cannot make", folder, number);
    return Error{error.code, error.message + (number == ENOENT ? "; create the folder that it is in"
                                                               : "; create it, and let this user write to it")};
  }
  struct stat entry {};
  if (::stat(folder.c_str(), &entry) != 0) return errno_error("cannot use", folder, errno);
  if (!S_ISDIR(entry.st_mode)) return errno_error("cannot use", folder, ENOTDIR);
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    const Error error = errno_error("cannot write in", folder, errno);
    return Error{error.code, error.message + "; let this user write to it"};
  }
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<PushQueue>> PushQueue::open(const std::string& folder, Limits limits) {
  std::unique_ptr<PushQueue> queue(new PushQueue(folder, limits));
  if (folder.empty()) return queue;
  if (const Status usable = prepare(folder); !usable.ok()) return usable.error();
  auto lock = FileLock::take(folder + "/gpu-ledger-push.lock");
  if (!lock.ok()) return Error{lock.error().code, lock.error().message + "; give each program a folder of its own"};
  queue->lock_ = *std::move(lock);
  if (const Status read = queue->read_folder(); !read.ok()) return read.error();
  queue->keep_limits();
  return queue;
}

Status PushQueue::read_folder() {
  std::error_code failed;
  std::vector<Waiting> found;
  for (std::filesystem::directory_iterator entry(folder_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename();
    std::error_code unknown;
    if (entry->symlink_status(unknown).type() != std::filesystem::file_type::regular) continue;
    // Of a writer that was killed. Nobody else writes here.
    const std::string_view hidden = name;
    if (hidden.starts_with('.') && hidden.size() > kRandomPart &&
        parse_name(hidden.substr(1, hidden.size() - 1 - kRandomPart))) {
      ::unlink(entry->path().c_str());
      continue;
    }
    auto waiting = parse_name(name);
    if (!waiting) continue;
    const uint64_t size = entry->file_size(unknown);
    waiting->bytes = unknown ? kDiskUnit : on_disk(size);
    found.push_back(*std::move(waiting));
  }
  if (failed) return errno_error("cannot read", folder_, failed.value());
  std::sort(found.begin(), found.end(), [](const Waiting& a, const Waiting& b) { return a.number < b.number; });
  for (Waiting& waiting : found) {
    next_ = waiting.number + 1;
    add(std::move(waiting));
  }
  return ok_status();
}

// Number, time and samples are in the name, so that a start reads no file: there may be many.
std::string PushQueue::name_of(const Waiting& waiting) {
  return fmt::format("{}{:012}-{}-{}{}", kPrefix, waiting.number, waiting.at_ms, waiting.samples, kSuffix);
}

std::optional<PushQueue::Waiting> PushQueue::parse_name(std::string_view name) {
  Waiting waiting;
  waiting.on_disk = true;
  std::string_view rest = name;
  if (!rest.starts_with(kPrefix)) return std::nullopt;
  rest.remove_prefix(kPrefix.size());
  if (!take_number(rest, '-', waiting.number) || !take_number(rest, '-', waiting.at_ms) ||
      !take_number(rest, '.', waiting.samples)) {
    return std::nullopt;
  }
  if (waiting.number == std::numeric_limits<uint64_t>::max()) return std::nullopt;  // none follows it
  return name_of(waiting) == name ? std::optional(std::move(waiting)) : std::nullopt;
}

void PushQueue::add(Waiting waiting) {
  samples_ += waiting.samples;
  if (!waiting.on_disk) memory_samples_ += waiting.samples;
  (waiting.on_disk ? disk_bytes_ : memory_bytes_) += waiting.bytes;
  waiting_.push_back(std::move(waiting));
}

Status PushQueue::append(PushBlock block) {
  Waiting waiting{next_++, block.at_ms, block.samples, 0, !folder_.empty(), {}};
  Status written = ok_status();
  if (waiting.on_disk) {
    const std::string text = head_of(block.body) + block.body;
    waiting.bytes = on_disk(text.size());
    written = write_file_atomically(path_of(waiting), text, 0600);
    waiting.on_disk = written.ok();
  }
  if (!waiting.on_disk) {
    waiting.bytes = block.body.size();
    waiting.body = std::move(block.body);
  }
  add(std::move(waiting));
  keep_limits();
  return written;
}

void PushQueue::keep_limits() {
  const auto shrink = [&](bool disk, const uint64_t& bytes, uint64_t limit) {
    while (bytes > limit) {
      const auto oldest = std::find_if(waiting_.begin(), waiting_.end(),
                                       [&](const Waiting& waiting) { return waiting.on_disk == disk; });
      over_limit_ += oldest->samples;
      drop(oldest);
    }
  };
  shrink(true, disk_bytes_, limits_.on_disk);
  shrink(false, memory_bytes_, limits_.in_memory);
}

void PushQueue::drop(const std::deque<Waiting>::iterator& which) {
  samples_ -= which->samples;
  if (!which->on_disk) memory_samples_ -= which->samples;
  (which->on_disk ? disk_bytes_ : memory_bytes_) -= which->bytes;
  // A file that stays is sent once more after a restart, and the receiver knows its samples.
  if (which->on_disk) ::unlink(path_of(*which).c_str());
  waiting_.erase(which);
}

Result<std::string> PushQueue::read_body(const Waiting& waiting) const {
  const std::string path = path_of(waiting);
  GL_TRY(text, read_file(path, kLargestFile));
  const size_t line = text.find('\n') + 1;
  std::string body = text.substr(line);
  if (line == 0 || body.empty() || text.substr(0, line) != head_of(body))
    return Error{Code::kMalformed, path + ": damaged"};
  return body;
}

Result<std::optional<PushQueue::Front>> PushQueue::front() {
  while (!waiting_.empty()) {
    Waiting& oldest = waiting_.front();
    std::optional<Front> front(Front{oldest.number, {oldest.at_ms, oldest.samples, oldest.body}});
    if (!oldest.on_disk) return front;
    auto body = read_body(oldest);
    if (body.ok()) {
      front->block.body = *std::move(body);
      return front;
    }
    const Code code = body.error().code;
    const bool for_good = code == Code::kMalformed || code == Code::kNotFound;
    if (!for_good && ++oldest.failed_reads < kMostFailedReads) return body.error();
    log_warn("a block of samples to push cannot be read and is dropped",
             {{"samples", oldest.samples}, {"error", body.error().message}});
    unreadable_ += oldest.samples;
    drop(waiting_.begin());
  }
  return std::optional<Front>();
}

bool PushQueue::remove(uint64_t number) {
  if (waiting_.empty() || waiting_.front().number != number) return false;
  drop(waiting_.begin());
  return true;
}

std::optional<int64_t> PushQueue::oldest_ms() const {
  return waiting_.empty() ? std::nullopt : std::optional(waiting_.front().at_ms);
}

}  // namespace gpuledger::app
