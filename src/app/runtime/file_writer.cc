// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/file_writer.h"

#include <unistd.h>

#include <utility>

#include "base/file.h"
#include "base/mutex.h"
#include "task/health_cell.h"

namespace gpuledger::app {
namespace {

constexpr Nanoseconds kShortPatience = std::chrono::milliseconds(50);

}  // namespace

struct FileWriter::Shared {
  Shared(std::string source, std::string where, Write how)
      : path(std::move(where)), write(std::move(how)), health(std::move(source)) {
    health.works();
  }

  const std::string path;
  const Write write;
  task::HealthCell health;
  bool written_once = false;  // the thread's own
  Mutex mutex;
  Text pending GL_GUARDED_BY(mutex);  // there: the worker has been told
};

FileWriter::FileWriter(std::string source, std::string path, Write write)
    : shared_(std::make_shared<Shared>(std::move(source), std::move(path), std::move(write))) {
  shared_->health.needs_thread(worker_.start());
  worker_.post([shared = shared_] { remove_left_temporaries(shared->path); });
}

FileWriter::~FileWriter() {
  (void)finish(kShortPatience);
}

void FileWriter::post(Text text) {
  const MutexLock lock(shared_->mutex);
  if (!std::exchange(shared_->pending, std::move(text))) {
    worker_.post([shared = shared_] { write_pending(*shared); });
  }
}

void FileWriter::write_pending(Shared& shared) {
  MutexLock lock(shared.mutex);
  const Text text = std::exchange(shared.pending, nullptr);
  lock.unlock();
  if (!text) return;
  const Status written = shared.write(shared.path, *text);
  if (written.ok()) {
    shared.written_once = true;
    shared.health.works();
  } else {
    shared.health.fails(code_name(written.error().code), written.error().message);
  }
}

bool FileWriter::wait(Nanoseconds patience) {
  return worker_.wait(patience);
}

SourceHealth FileWriter::health() const {
  return shared_->health.get();
}

bool FileWriter::finish(Nanoseconds patience) {
  return worker_.end(patience);
}

// The writing thread removes the file, so it cannot write after the removal.
bool FileWriter::remove(Nanoseconds patience) {
  MutexLock lock(shared_->mutex);
  shared_->pending.reset();
  lock.unlock();
  worker_.post([shared = shared_] {
    if (shared->written_once && check_regular_or_absent(shared->path).ok()) ::unlink(shared->path.c_str());
  });
  return worker_.end(patience);
}

}  // namespace gpuledger::app
