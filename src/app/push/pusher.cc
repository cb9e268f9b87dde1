// SPDX-License-Identifier: Apache-2.0
#include "app/push/pusher.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "app/push/push_queue.h"
#include "app/push/snapshot_packer.h"
#include "base/log.h"
#include "base/mutex.h"
#include "task/health_cell.h"

namespace gpuledger::app {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kMostSnapshotsUnwritten = 4;
constexpr Nanoseconds kLongestRetryAfter = std::chrono::minutes(5);
constexpr Nanoseconds kPauseAtEnd = std::chrono::milliseconds(300);
constexpr Nanoseconds kShortPatience = std::chrono::milliseconds(100);

Nanoseconds wall_now() {
  return SystemClock{}.now().wall;
}

}  // namespace

struct Pusher::Shared {
  Shared(PushOptions given, std::unique_ptr<PushQueue> opened)
      : options(std::move(given)), packer(options.labels), queue(std::move(opened)) {
    receiver.works();
    disk.works();
    const MutexLock lock(queue_mutex);
    publish();
  }

  // The writer's.
  void write(std::optional<PushBlock> block);
  // The sender's.
  void send_all();
  bool wait_for_block();
  bool pause(Nanoseconds time, bool told);
  Result<std::optional<PushQueue::Front>> oldest();
  void settle(const PushQueue::Front& front, const PushOutcome& outcome);

  // Shows the queue's numbers to those who must not wait for a disk.
  void publish() GL_REQUIRES(queue_mutex);

  const PushOptions options;
  task::HealthCell receiver{"push"};
  task::HealthCell disk{"push-queue"};
  net::Interrupt interrupt;
  SnapshotPacker packer;      // the writer's own
  bool last_refused = false;  // the sender's own

  Mutex queue_mutex;  // held during file operations; only the two threads take it
  const std::unique_ptr<PushQueue> queue GL_GUARDED_BY(queue_mutex);

  mutable Mutex mutex;
  std::condition_variable_any changed;
  PushStats stats GL_GUARDED_BY(mutex);
  size_t blocks GL_GUARDED_BY(mutex) = 0;
  uint64_t samples_in_memory GL_GUARDED_BY(mutex) = 0;
  size_t unwritten GL_GUARDED_BY(mutex) = 0;  // snapshots
  bool closed GL_GUARDED_BY(mutex) = false;   // for snapshots
  bool ending GL_GUARDED_BY(mutex) = false;   // no more blocks come; send them until `latest`
  bool ended GL_GUARDED_BY(mutex) = false;    // the sender
  SteadyClock::time_point latest GL_GUARDED_BY(mutex);
};

void Pusher::Shared::publish() {
  const MutexLock lock(mutex);
  blocks = queue->blocks();
  samples_in_memory = queue->samples_in_memory();
  stats.waiting = queue->samples();
  stats.waiting_bytes = queue->bytes();
  stats.over_limit = queue->over_limit();
  stats.unreadable = queue->unreadable();
  const auto oldest = queue->oldest_ms();
  stats.oldest_waiting = oldest ? std::optional<Nanoseconds>(std::chrono::milliseconds(*oldest)) : std::nullopt;
  changed.notify_all();
}

void Pusher::Shared::write(std::optional<PushBlock> block) {
  if (!block) return;
  const MutexLock lock(queue_mutex);
  const Status written = queue->append(*std::move(block));
  if (written.ok()) {
    disk.works();
  } else {
    disk.fails(code_name(written.error().code), written.error().message + "; the queue is in memory");
  }
  publish();
}

bool Pusher::Shared::wait_for_block() {
  MutexLock lock(mutex);
  changed.wait(lock, [this]() GL_REQUIRES(mutex) { return ending || blocks > 0; });
  return blocks > 0 && !(ending && SteadyClock::now() >= latest);
}

// told: by the receiver. False: there is no time for another attempt.
bool Pusher::Shared::pause(Nanoseconds time, bool told) {
  MutexLock lock(mutex);
  if (!ending) {
    changed.wait_for(lock, time, [this]() GL_REQUIRES(mutex) { return ending; });
    return true;
  }
  const auto next = SteadyClock::now() + (told ? time : std::min(time, kPauseAtEnd));
  if (next >= latest) return false;
  changed.wait_until(lock, next, [] { return false; });
  return true;
}

Result<std::optional<PushQueue::Front>> Pusher::Shared::oldest() {
  const MutexLock lock(queue_mutex);
  auto front = queue->front();
  publish();  // unreadable ones are gone
  return front;
}

void Pusher::Shared::settle(const PushQueue::Front& front, const PushOutcome& outcome) {
  const bool taken = outcome.verdict == PushOutcome::Verdict::kTaken;
  const MutexLock lock(queue_mutex);
  const bool was_there = queue->remove(front.number);
  MutexLock of_stats(mutex);
  // What was dropped meanwhile is counted there.
  if (was_there) (taken ? stats.sent : stats.rejected) += front.block.samples;
  if (taken) stats.last_success = wall_now();
  of_stats.unlock();
  publish();
}

void Pusher::Shared::send_all() {
  net::Backoff backoff(options.pace);
  while (wait_for_block()) {
    const auto read = oldest();
    if (!read.ok()) {
      disk.fails(code_name(read.error().code), read.error().message);
      if (!pause(backoff.next(SteadyClock::now()), false)) return;
      continue;
    }
    const auto& front = read.value();
    if (!front) continue;
    const PushOutcome outcome = post_block(options.receiver, front->block.body, interrupt);
    if (outcome.verdict == PushOutcome::Verdict::kLater) {
      receiver.fails(outcome.code, outcome.reason);
      const Nanoseconds told =
          std::min<Nanoseconds>(outcome.retry_after.value_or(std::chrono::seconds(0)), kLongestRetryAfter);
      const Nanoseconds own = backoff.next(SteadyClock::now());
      if (!pause(std::max(own, told), outcome.retry_after.has_value())) return;
      continue;
    }
    const bool refused = outcome.verdict == PushOutcome::Verdict::kRefused;
    if (refused) {
      receiver.fails(outcome.code, outcome.reason + "; these samples are dropped (docs/push.md says why)");
    } else {
      receiver.works();
      backoff.succeeded();
    }
    if (!std::exchange(last_refused, refused) && refused) {
      log_warn("the receiver refuses samples, which are dropped",
               {{"samples", front->block.samples}, {"error", outcome.reason}});
    }
    settle(*front, outcome);
  }
}

Result<std::unique_ptr<Pusher>> Pusher::open(PushOptions options) {
  PushQueue::Limits limits;
  limits.on_disk = options.queue_bytes;
  limits.in_memory = std::min(options.queue_bytes, limits.in_memory);
  GL_TRY(queue, PushQueue::open(options.queue_folder, limits).about("--push-queue-dir"));
  std::unique_ptr<Pusher> pusher(new Pusher(std::make_shared<Shared>(std::move(options), std::move(queue))));
  GL_TRY_STATUS(pusher->start().about("push"));
  return pusher;
}

Pusher::Pusher(std::shared_ptr<Shared> shared) : interval_(shared->options.interval), shared_(std::move(shared)) {}

Status Pusher::start() {
  GL_TRY_STATUS(writer_.start());
  return sender_.start([state = shared_] {
    state->send_all();
    const MutexLock lock(state->mutex);
    state->ended = true;
    state->changed.notify_all();
  });
}

Pusher::~Pusher() {
  finish(nullptr, nullptr, Nanoseconds(0));
}

void Pusher::post(std::shared_ptr<const Cycle> cycle, ShownOptions shown) {
  MutexLock lock(shared_->mutex);
  if (shared_->closed) return;
  if (shared_->unwritten >= kMostSnapshotsUnwritten) {
    lock.unlock();
    shared_->disk.fails("slow_disk", shared_->options.queue_folder + ": the disk is too slow; a snapshot is left out");
    return;
  }
  ++shared_->unwritten;
  lock.unlock();
  writer_.post([shared = shared_, cycle = std::move(cycle), shown = std::move(shown)] {
    shared->write(shared->packer.pack(*cycle, *shown));
    const MutexLock done(shared->mutex);
    --shared->unwritten;
  });
}

PushStats Pusher::stats() const {
  const MutexLock lock(shared_->mutex);
  return shared_->stats;
}

std::vector<SourceHealth> Pusher::health() const {
  std::vector<SourceHealth> all = {shared_->receiver.get()};
  if (!shared_->options.queue_folder.empty()) all.push_back(shared_->disk.get());
  return all;
}

void Pusher::finish(std::shared_ptr<const Cycle> last, ShownOptions shown, Nanoseconds patience) {
  const auto latest = SteadyClock::now() + patience;
  if (last) post(std::move(last), std::move(shown));
  MutexLock lock(shared_->mutex);
  if (std::exchange(shared_->closed, true)) return;
  lock.unlock();
  if (patience.count() > 0) {
    writer_.post([shared = shared_] { shared->write(shared->packer.end()); });
  }
  const bool written = writer_.end(std::min(patience, shared_->options.patience_with_disk) + kShortPatience);
  lock.lock();
  shared_->ending = true;
  shared_->latest = latest;
  shared_->changed.notify_all();
  shared_->changed.wait_until(lock, latest, [this]() GL_REQUIRES(shared_->mutex) { return shared_->ended; });
  lock.unlock();
  shared_->interrupt.raise();
  (void)sender_.end(kShortPatience);
  if (patience.count() == 0) return;
  lock.lock();
  const uint64_t lost = shared_->samples_in_memory;
  const uint64_t kept = shared_->stats.waiting - lost;
  lock.unlock();
  if (!written) log_warn("ending while the disk of the push queue does not answer; the last samples may be lost");
  if (lost > 0) log_warn("ending with samples that no receiver has; they are lost", {{"samples", lost}});
  if (kept > 0) log_warn("ending with samples that no receiver has; they stay in the queue", {{"samples", kept}});
}

}  // namespace gpuledger::app
