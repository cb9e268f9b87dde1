// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_engine_thread.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "base/borrowed_clock.h"
#include "base/mutex.h"

namespace gpuledger::dcgm {

namespace {

constexpr Nanoseconds kFirstRetry = std::chrono::seconds(1);
// The longest wait for an engine that is back. A failed try costs a sleeping thread two seconds.
constexpr Nanoseconds kLastRetry = std::chrono::seconds(4);
constexpr Nanoseconds kAnswerLimit = std::chrono::seconds(3);
constexpr size_t kMostEvents = 4096;

template <typename T>
void append(std::vector<T>& events, const std::vector<T>& fresh) {
  events.insert(events.end(), fresh.begin(), fresh.end());
  if (events.size() > kMostEvents) events.erase(events.begin(), events.end() - kMostEvents);
}

// The times at which a process came or left are reported once. If that view was not taken, the next one reports them.
void carry_over(const std::vector<ProcessSample>& untaken, std::vector<ProcessSample>& processes) {
  for (const ProcessSample& process : untaken) {
    const auto at = std::lower_bound(processes.begin(), processes.end(), process.pid,
                                     [](const ProcessSample& other, Pid pid) { return other.pid < pid; });
    if (at == processes.end() || at->pid != process.pid) {
      if (process.left) processes.insert(at, process);
    } else if (!at->came) {
      at->came = process.came;
    }
  }
}

void carry_over(const View& untaken, View& view) {
  for (const DeviceSample& before : untaken.devices) {
    for (DeviceSample& device : view.devices) {
      if (device.description->uuid == before.description->uuid) carry_over(before.processes, device.processes);
    }
  }
}

}  // namespace

// Kept by the thread too, so that it may outlive the source.
struct EngineThread::Shared {
  Shared(std::shared_ptr<Library> given, Where at, ReaderOptions wanted, const Clock& borrowed)
      : library(std::move(given)), where(std::move(at)), clock(borrowed), options(std::move(wanted)) {
    findings.health.source = "dcgm";
    findings.health.reason = "connecting";
    findings.health.undecided = true;
  }

  // The thread's own.
  const std::shared_ptr<Library> library;
  const Where where;
  BorrowedClock clock;
  CallBook book;
  std::unique_ptr<Connection> connection;
  std::unique_ptr<Reader> reader;

  Mutex mutex;
  std::condition_variable_any changed;
  ReaderOptions options GL_GUARDED_BY(mutex);
  bool renew GL_GUARDED_BY(mutex) = false;  // connect again before the next read
  bool stop GL_GUARDED_BY(mutex) = false;
  bool released GL_GUARDED_BY(mutex) = false;
  bool asked GL_GUARDED_BY(mutex) = true;  // the first read needs no request
  bool done GL_GUARDED_BY(mutex) = false;  // the first read has succeeded or failed
  std::set<GpuUuid> without_activity GL_GUARDED_BY(mutex);
  std::optional<Nanoseconds> busy_since GL_GUARDED_BY(mutex);  // steady, as all times here
  bool hang_counted GL_GUARDED_BY(mutex) = false;
  uint64_t hangs GL_GUARDED_BY(mutex) = 0;
  Nanoseconds next_attempt GL_GUARDED_BY(mutex) = Nanoseconds(0);
  Nanoseconds retry GL_GUARDED_BY(mutex) = kFirstRetry;
  Findings findings GL_GUARDED_BY(mutex);
  bool taken GL_GUARDED_BY(mutex) = false;  // its view
  Nanoseconds viewed_at GL_GUARDED_BY(mutex) = Nanoseconds(0);

  Nanoseconds now() const { return clock.now().steady; }
  bool has_work() const GL_REQUIRES(mutex) { return !released && asked && now() >= next_attempt; }
  void wait_for_work(MutexLock& lock) GL_REQUIRES(mutex);
  Result<View> look(const ReaderOptions& wanted, const std::set<GpuUuid>& without);
  void disconnect();
  void keep(Result<View> view) GL_REQUIRES(mutex);
  void ask_to_end();
};

void EngineThread::Shared::ask_to_end() {
  const MutexLock lock(mutex);
  stop = true;
  changed.notify_all();
}

void EngineThread::Shared::wait_for_work(MutexLock& lock) {
  while (!stop && !has_work() && !(released && connection)) {
    if (!released && asked) {
      // A request in between looks at the clock again.
      changed.wait_for(lock, std::max(next_attempt - now(), Nanoseconds(0)));
    } else {
      changed.wait(lock);
    }
  }
}

void EngineThread::Shared::disconnect() {
  reader.reset();
  connection.reset();
}

Result<View> EngineThread::Shared::look(const ReaderOptions& wanted, const std::set<GpuUuid>& without) {
  if (!connection) {
    GL_TRY(opened, Connection::open(library, where, book));
    connection = std::move(opened);
    reader = std::make_unique<Reader>(*connection, wanted, clock);
  }
  Result<View> view = reader->read(without);
  // Also an engine that answers without data: its watches may be lost, so we connect again.
  if (connection->gone() || !view.ok()) disconnect();
  return view;
}

void EngineThread::Shared::keep(Result<View> view) {
  done = true;
  asked = false;
  findings.health.undecided = false;
  findings.health.errors = book.errors;
  findings.durations = book.durations;
  if (released) return;
  if (view.ok()) {
    append(findings.lives, view->lives);
    append(findings.xids, view->xids);
    if (findings.view && !taken) carry_over(*findings.view, *view);
    taken = false;
    findings.view = std::make_shared<const View>(std::move(*view));
    findings.health.up = true;
    findings.health.reason.clear();
    viewed_at = now();
    retry = kFirstRetry;
    return;
  }
  findings.view.reset();
  findings.health.up = false;
  findings.health.reason = view.error().message;
  next_attempt = now() + retry;
  retry = std::min(retry * 2, kLastRetry);
}

EngineThread::EngineThread(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

Result<std::unique_ptr<EngineThread>> EngineThread::start(std::shared_ptr<Library> library, Where where,
                                                          ReaderOptions options, const Clock& clock) {
  auto shared = std::make_shared<Shared>(std::move(library), std::move(where), std::move(options), clock);
  std::unique_ptr<EngineThread> engine(new EngineThread(shared));
  GL_TRY_STATUS(engine->thread_.start([shared] { run(*shared); }));
  return engine;
}

EngineThread::~EngineThread() {
  shared_->ask_to_end();
  // Waits for a read that is about to end; a thread that hangs is left behind.
  (void)thread_.end(std::chrono::milliseconds(200));
  shared_->clock.give_back();
}

void EngineThread::run(Shared& shared) {
  MutexLock lock(shared.mutex);
  while (true) {
    shared.wait_for_work(lock);
    const bool stop = shared.stop;
    const bool ending = stop || shared.released;
    const std::set<GpuUuid> without = shared.without_activity;
    const ReaderOptions options = shared.options;
    const bool renew = std::exchange(shared.renew, false);
    shared.busy_since = shared.now();
    shared.hang_counted = false;
    lock.unlock();
    std::optional<Result<View>> view;
    if (ending || renew) shared.disconnect();
    if (stop) return;
    if (!ending) view = shared.look(options, without);
    lock.lock();
    if (view) shared.keep(std::move(*view));
    shared.busy_since.reset();
    shared.changed.notify_all();
  }
}

void EngineThread::ask(std::set<GpuUuid> without_activity) {
  const MutexLock lock(shared_->mutex);
  if (shared_->busy_since) return;
  shared_->without_activity = std::move(without_activity);
  shared_->asked = true;
  shared_->changed.notify_all();
}

void EngineThread::wait(Nanoseconds patience) {
  MutexLock lock(shared_->mutex);
  // While it waits before it connects again there is nothing to wait for.
  shared_->changed.wait_for(lock, patience, [this]() GL_REQUIRES(shared_->mutex) {
    return !shared_->busy_since && (!shared_->asked || !shared_->has_work());
  });
}

void EngineThread::wait_for_first(Nanoseconds patience) {
  MutexLock lock(shared_->mutex);
  shared_->changed.wait_for(lock, patience, [this]() GL_REQUIRES(shared_->mutex) { return shared_->done; });
}

Findings EngineThread::take() {
  const MutexLock lock(shared_->mutex);
  const Nanoseconds now = shared_->now();
  const Nanoseconds limit = std::max(kAnswerLimit, 3 * shared_->options.interval);
  Findings& held = shared_->findings;
  if (shared_->busy_since && now - *shared_->busy_since > limit) {
    if (!std::exchange(shared_->hang_counted, true)) ++shared_->hangs;
    held.health.up = false;
    held.health.reason = "does not answer";
  }
  if (held.view && now - shared_->viewed_at > limit) held.view.reset();
  Findings out = held;
  if (shared_->hangs > 0) out.health.errors[code_name(Code::kTimeout)] += shared_->hangs;
  shared_->taken = true;
  held.lives.clear();
  held.xids.clear();
  return out;
}

void EngineThread::change_interval(Nanoseconds interval) {
  const MutexLock lock(shared_->mutex);
  if (interval != shared_->options.interval) shared_->renew = true;
  shared_->options.interval = interval;
}

void EngineThread::release() {
  const MutexLock lock(shared_->mutex);
  shared_->released = true;
  shared_->findings.view.reset();
  shared_->findings.health.up = false;
  shared_->findings.health.reason = "released on request: the connection is closed until SIGUSR2";
  shared_->changed.notify_all();
}

void EngineThread::resume() {
  const MutexLock lock(shared_->mutex);
  shared_->released = false;
  shared_->asked = true;
  shared_->next_attempt = Nanoseconds(0);
  shared_->retry = kFirstRetry;
  shared_->changed.notify_all();
}

}  // namespace gpuledger::dcgm
