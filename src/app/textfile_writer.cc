#include "app/textfile_writer.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/file.h"

namespace gpuledger::app {
namespace {

constexpr Nanoseconds kPatienceWithDisk = std::chrono::milliseconds(200);

void note(SourceHealth& health, const Status& written) {
  health.up = written.ok();
  health.reason = written.ok() ? "" : written.error().message;
  if (!written.ok()) ++health.errors[code_name(written.error().code)];
}

}  // namespace

struct TextfileWriter::Shared {
  std::string path;
  Write write;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> pending;
  SourceHealth health{.source = "textfile", .up = true, .reason = {}, .errors = {}};
  bool ending = false;
  bool remove = false;  // at the end
  bool ended = false;
};

TextfileWriter::TextfileWriter(std::string path, Write write) : shared_(std::make_shared<Shared>()) {
  shared_->path = std::move(path);
  shared_->write = std::move(write);
  thread_ = std::thread([shared = shared_] { run(*shared); });
}

TextfileWriter::~TextfileWriter() {
  (void)end(false, kPatienceWithDisk);
}

Status TextfileWriter::write_whole(const std::string& path, std::string_view text) {
  return write_file_atomically(path, text, 0644);
}

void TextfileWriter::write_now(std::string_view text) {
  const Status written = shared_->write(shared_->path, text);
  const std::lock_guard lock(shared_->mutex);
  note(shared_->health, written);
}

void TextfileWriter::post(std::string text) {
  const std::lock_guard lock(shared_->mutex);
  shared_->pending = std::move(text);
  shared_->changed.notify_all();
}

SourceHealth TextfileWriter::health() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->health;
}

bool TextfileWriter::remove(Nanoseconds patience) {
  return end(true, patience);
}

bool TextfileWriter::end(bool remove, Nanoseconds patience) {
  if (!thread_.joinable()) return true;
  std::unique_lock lock(shared_->mutex);
  shared_->ending = true;
  shared_->remove = remove;
  shared_->changed.notify_all();
  const bool ended = shared_->changed.wait_for(lock, patience, [this] { return shared_->ended; });
  lock.unlock();
  // A write cannot be called back; the thread owns all it touches.
  if (ended)
    thread_.join();
  else
    thread_.detach();
  return ended;
}

// The file is removed here and nowhere else: one thread cannot write after it has removed.
void TextfileWriter::run(Shared& shared) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(lock, [&] { return shared.ending || shared.pending; });
    if (shared.ending) break;
    const std::string text = *std::exchange(shared.pending, std::nullopt);
    lock.unlock();
    const Status written = shared.write(shared.path, text);
    lock.lock();
    note(shared.health, written);
  }
  const bool remove = shared.remove;
  lock.unlock();
  if (remove) ::unlink(shared.path.c_str());
  lock.lock();
  shared.ended = true;
  shared.changed.notify_all();
}

}  // namespace gpuledger::app
