#include "app/state_keeper.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "attribute/state_file.h"
#include "attribute/state_text.h"
#include "base/file.h"
#include "base/log.h"

namespace gpuledger::app {
namespace {

constexpr Nanoseconds kBetweenDurable = std::chrono::seconds(10);
// Far more than writing to memory takes, far less than a cycle.
constexpr Nanoseconds kPatienceWithSystem = std::chrono::milliseconds(50);

}  // namespace

// One file, one thread. A text that is not yet being written when the next one comes is dropped for it.
class StateKeeper::Writer {
 public:
  using Text = std::shared_ptr<const std::string>;

  Writer(std::string path, Flush flush) : shared_(std::make_shared<Shared>()) {
    shared_->path = std::move(path);
    shared_->flush = flush;
    thread_ = std::thread([shared = shared_] { run(*shared); });
  }
  ~Writer() { (void)end(kPatienceWithSystem); }

  void post(Text text) {
    const std::lock_guard lock(shared_->mutex);
    shared_->pending = std::move(text);
    shared_->changed.notify_all();
  }

  // False: not all that was posted is written.
  bool wait(Nanoseconds patience) {
    std::unique_lock lock(shared_->mutex);
    return shared_->changed.wait_for(lock, patience, [this] { return !shared_->pending && !shared_->busy; });
  }

  // Writes what waits. False: a write cannot be called back, and the thread, which owns all it touches, is left to it.
  bool end(Nanoseconds patience) {
    if (!thread_.joinable()) return true;
    std::unique_lock lock(shared_->mutex);
    shared_->ending = true;
    shared_->changed.notify_all();
    const bool ended = shared_->changed.wait_for(lock, patience, [this] { return shared_->ended; });
    lock.unlock();
    if (ended)
      thread_.join();
    else
      thread_.detach();
    return ended;
  }

  SourceHealth health() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->health;
  }

 private:
  struct Shared {
    std::string path;
    Flush flush = Flush::kToDisk;
    std::mutex mutex;
    std::condition_variable changed;
    Text pending;
    SourceHealth health{.source = "state-file", .up = true, .reason = {}, .errors = {}};
    bool busy = false;
    bool ending = false;
    bool ended = false;
  };

  static void run(Shared& shared) {
    std::unique_lock lock(shared.mutex);
    for (;;) {
      shared.changed.wait(lock, [&] { return shared.ending || shared.pending; });
      if (!shared.pending) break;
      const Text text = std::exchange(shared.pending, nullptr);
      shared.busy = true;
      lock.unlock();
      const Status written = write_file_atomically(shared.path, *text, 0644, shared.flush);
      lock.lock();
      shared.busy = false;
      shared.health.up = written.ok();
      shared.health.reason = written.ok() ? "" : written.error().message;
      if (!written.ok()) ++shared.health.errors[code_name(written.error().code)];
      shared.changed.notify_all();
    }
    shared.ended = true;
    shared.changed.notify_all();
  }

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

StateKeeper::StateKeeper(const std::string& path)
    : path_(path),
      recent_(std::make_unique<Writer>(attribute::recent_state_path(path), Flush::kToSystem)),
      durable_(std::make_unique<Writer>(path, Flush::kToDisk)) {}

StateKeeper::~StateKeeper() = default;

Result<std::unique_ptr<StateKeeper>> StateKeeper::open(const std::string& path, const Clock& clock) {
  const auto unix_time = std::chrono::duration_cast<std::chrono::seconds>(clock.now().wall).count();
  auto found = attribute::read_state_files(path, unix_time);
  if (!found.ok()) return found.error();
  for (const std::string& warning : found->warnings) log_warn(warning);
  std::unique_ptr<StateKeeper> keeper(new StateKeeper(path));
  keeper->found_ = std::move(found->state);
  return keeper;
}

attribute::EngineState StateKeeper::take_found() {
  return std::exchange(found_, {});
}

void StateKeeper::keep(const attribute::EngineState& state, Nanoseconds now) {
  const bool first = !last_durable_;
  last_ = std::make_shared<const std::string>(attribute::write_state(state));
  recent_->post(last_);
  if (first || now - *last_durable_ >= kBetweenDurable) {
    last_durable_ = now;
    durable_->post(last_);
  }
  if (first) (void)durable_->wait(kBetweenDurable);
  (void)recent_->wait(kPatienceWithSystem);
}

bool StateKeeper::finish(Nanoseconds patience) {
  if (last_) durable_->post(last_);
  // First the one that could write again after it was removed.
  if (!recent_->end(patience) || !durable_->end(patience)) return false;
  if (last_ && durable_->health().up) ::unlink(attribute::recent_state_path(path_).c_str());
  return true;
}

SourceHealth StateKeeper::health() const {
  SourceHealth health = durable_->health();
  const SourceHealth recent = recent_->health();
  if (health.up) health.reason = recent.reason;
  health.up = health.up && recent.up;
  for (const auto& [code, count] : recent.errors) health.errors[code] += count;
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
