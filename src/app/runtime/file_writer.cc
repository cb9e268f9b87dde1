#include "app/runtime/file_writer.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/file.h"

namespace gpuledger::app {
namespace {

constexpr Nanoseconds kShortPatience = std::chrono::milliseconds(50);

}  // namespace

struct FileWriter::Shared {
  std::string path;
  Write write;
  std::mutex mutex;
  std::condition_variable changed;
  Text pending;
  SourceHealth health;
  bool busy = false;
  bool ending = false;
  bool remove = false;  // at the end
  bool ended = false;
};

FileWriter::FileWriter(std::string source, std::string path, Write write) : shared_(std::make_shared<Shared>()) {
  shared_->health = {.source = std::move(source), .up = true, .reason = {}, .errors = {}};
  shared_->path = std::move(path);
  shared_->write = std::move(write);
  thread_ = std::thread([shared = shared_] { run(*shared); });
}

FileWriter::~FileWriter() {
  (void)end(false, kShortPatience);
}

void FileWriter::post(Text text) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->ending) return;
  shared_->pending = std::move(text);
  shared_->changed.notify_all();
}

bool FileWriter::wait(Nanoseconds patience) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, patience, [this] { return !shared_->pending && !shared_->busy; });
}

SourceHealth FileWriter::health() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->health;
}

bool FileWriter::finish(Nanoseconds patience) {
  return end(false, patience);
}

bool FileWriter::remove(Nanoseconds patience) {
  return end(true, patience);
}

bool FileWriter::end(bool remove, Nanoseconds patience) {
  if (!thread_.joinable()) return true;
  std::unique_lock lock(shared_->mutex);
  shared_->ending = true;
  shared_->remove = remove;
  if (remove) shared_->pending.reset();
  shared_->changed.notify_all();
  const bool ended = shared_->changed.wait_for(lock, patience, [this] { return shared_->ended; });
  lock.unlock();
  // The thread owns all it touches.
  if (ended)
    thread_.join();
  else
    thread_.detach();
  return ended;
}

// The file is removed here and nowhere else: one thread cannot write after it has removed.
void FileWriter::run(Shared& shared) {
  remove_left_temporaries(shared.path);
  bool written_once = false;
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(lock, [&] { return shared.ending || shared.pending; });
    if (!shared.pending) break;
    const Text text = std::exchange(shared.pending, nullptr);
    shared.busy = true;
    lock.unlock();
    const Status written = shared.write(shared.path, *text);
    lock.lock();
    shared.busy = false;
    written_once = written_once || written.ok();
    shared.health.up = written.ok();
    shared.health.reason = written.ok() ? "" : written.error().message;
    if (!written.ok()) ++shared.health.errors[code_name(written.error().code)];
    shared.changed.notify_all();
  }
  const bool remove = shared.remove;
  lock.unlock();
  if (remove && written_once && check_regular_or_absent(shared.path).ok()) ::unlink(shared.path.c_str());
  lock.lock();
  shared.ended = true;
  shared.changed.notify_all();
}

}  // namespace gpuledger::app
