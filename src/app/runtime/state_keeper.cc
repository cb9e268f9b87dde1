// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/state_keeper.h"

#include <unistd.h>

#include "app/runtime/state_file.h"
#include "attribute/state/state_text.h"
#include "base/file.h"
#include "base/log.h"

namespace gpuledger::app {
namespace {

constexpr Nanoseconds kBetweenDurable = std::chrono::seconds(10);
// Far more than a write to memory takes, far less than a cycle.
constexpr Nanoseconds kPatienceWithSystem = std::chrono::milliseconds(50);
constexpr const char* kSource = "state-file";

FileWriter::Write write_with(mode_t mode, Flush flush) {
  return [mode, flush](const std::string& path, std::string_view text) {
    Status written = write_file_atomically(path, text, mode, flush);
    if (written.ok() || written.error().code != Code::kNotFound) return written;
    return Status(Error{Code::kNotFound, written.error().message + "; create the folder"});
  };
}

std::string lock_path(const std::string& path) {
  return path + ".lock";
}

}  // namespace

StateKeeper::StateKeeper(const std::string& path, mode_t mode)
    : path_(path),
      recent_(std::make_unique<FileWriter>(kSource, recent_state_path(path), write_with(mode, Flush::kToSystem))),
      durable_(std::make_unique<FileWriter>(kSource, path, write_with(mode, Flush::kToDisk))) {}

StateKeeper::~StateKeeper() = default;

Result<std::unique_ptr<StateKeeper>> StateKeeper::open(const std::string& path, mode_t mode, const Clock& clock) {
  const auto unix_time = std::chrono::duration_cast<std::chrono::seconds>(clock.now().wall).count();
  auto lock = FileLock::take(lock_path(path));
  if (!lock.ok() && lock.error().code != Code::kUnavailable) return lock.error();
  if (!lock.ok()) return Error{lock.error().code, path + " is used by another gpu-ledger; give this one its own file"};
  GL_TRY(found, read_state_files(path, unix_time));
  for (const std::string& warning : found.warnings) log_warn(warning);
  std::unique_ptr<StateKeeper> keeper(new StateKeeper(path, mode));
  for (const FileWriter* writer : {keeper->recent_.get(), keeper->durable_.get()}) {
    // Nothing was written yet: it has no thread.
    if (const SourceHealth health = writer->health(); !health.up) return Error{Code::kUnavailable, health.reason};
  }
  keeper->lock_ = std::move(*lock);
  keeper->found_ = std::move(found.state);
  return keeper;
}

attribute::EngineState StateKeeper::take_found() {
  return std::exchange(found_, {});
}

// If the lock was removed, another program may have the file: the first to notice takes a new lock.
bool StateKeeper::still_ours() {
  if (!taken_over_.empty()) return false;
  if (!lock_ || lock_->held()) return true;
  auto again = FileLock::take(lock_path(path_));
  if (!again.ok()) {
    taken_over_ = path_ + " is no longer ours: its lock was removed, and " + again.error().message;
    last_.reset();
    return false;
  }
  if (*again) lock_ = std::move(*again);  // null: its folder is missing for now
  return true;
}

void StateKeeper::keep(const attribute::EngineState& state, Nanoseconds now) {
  if (!still_ours()) return;
  const bool first = !last_durable_;
  const bool durable = first || now - *last_durable_ >= kBetweenDurable;
  last_ = std::make_shared<const std::string>(attribute::write_state(state));
  // Not in every cycle: reading takes several times as long as writing.
  if (durable) {
    last_durable_ = now;
    check_readable();
  }
  if (!unreadable_.empty()) return last_.reset();
  recent_->post(last_);
  if (durable) durable_->post(last_);
  if (first) (void)durable_->wait(kBetweenDurable);
  (void)recent_->wait(kPatienceWithSystem);
}

// A file that the next program refuses is worse than an old one.
void StateKeeper::check_readable() {
  const auto read_back = attribute::parse_state(*last_);
  unreadable_ = read_back.ok() ? "" : "the state is not written, because it " + read_back.error().message;
  if (!read_back.ok()) ++times_unreadable_;
}

bool StateKeeper::finish(Nanoseconds patience) {
  if (last_) check_readable();
  if (!unreadable_.empty()) last_.reset();
  if (last_) durable_->post(last_);
  // `recent_` first: it could write after its removal.
  if (!recent_->finish(patience) || !durable_->finish(patience)) return false;
  if (last_ && durable_->health().up) ::unlink(recent_state_path(path_).c_str());
  return true;
}

SourceHealth StateKeeper::health() const {
  SourceHealth health = durable_->health();
  const SourceHealth recent = recent_->health();
  if (health.up) health.reason = recent.reason;
  health.up = health.up && recent.up;
  for (const auto& [code, count] : recent.errors) health.errors[code] += count;
  if (times_unreadable_ > 0) health.errors[kUnreadable] += times_unreadable_;
  if (!unreadable_.empty()) {
    health.up = false;
    health.reason = unreadable_;
  }
  if (!taken_over_.empty()) {
    health.up = false;
    health.reason = taken_over_;
    ++health.errors["taken_over"];
  }
  return health;
}

std::string read_boot_id() {
  constexpr size_t kLongest = 128;
  auto text = read_file("/proc/sys/kernel/random/boot_id", kLongest);
  if (!text.ok()) return {};
  while (text->ends_with('\n')) text->pop_back();
  return std::move(*text);
}

}  // namespace gpuledger::app
