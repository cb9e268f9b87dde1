// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/trace_loop.h"

#include <algorithm>
#include <utility>

#include "base/capability.h"

namespace gpuledger::switch_trace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kPollPeriod = milliseconds(200);  // the ring holds seconds
constexpr Nanoseconds kGiveBackPeriod = seconds(5);     // the call takes a lock: 33 us, rarely 47 ms
constexpr Nanoseconds kComparePeriod = seconds(20);
constexpr Nanoseconds kLongestCompare = milliseconds(1);  // usually 15 us; a longer one was delayed
constexpr int kCompareTries = 3;
// What a switch costs the traced work, measured on an H200: docs/exact-time.md.
constexpr double kSecondsPerSwitch = 4.6e-6;
constexpr double kRecordsPerSwitch = 2;  // an end and a start
constexpr Nanoseconds kBurst = seconds(2);
constexpr Nanoseconds kShortestPause = seconds(2);  // to start a trace has a cost too
constexpr Nanoseconds kLongestPause = seconds(56);  // with the burst less than a minute
constexpr Nanoseconds kFirstRetry = seconds(1);
constexpr Nanoseconds kLastRetry = seconds(60);
constexpr Nanoseconds kNever = std::chrono::hours(1);
constexpr Nanoseconds kFarOff = seconds(1);

bool is_for_good(Code code) {
  return code == Code::kNotSupported || code == Code::kPermission || code == Code::kMalformed;
}

}  // namespace

void TraceReport::add(TraceReport&& later) {
  tracing = later.tracing;
  trouble = std::move(later.trouble);
  given_up = later.given_up;
  bins.insert(bins.end(), std::make_move_iterator(later.bins.begin()), std::make_move_iterator(later.bins.end()));
  records += later.records;
  lost += later.lost;
  counts.switches += later.counts.switches;
  counts.switching += later.counts.switching;
  counts.unknown += later.counts.unknown;
  counts.doubtful += later.counts.doubtful;
  counts.late += later.counts.late;
  for (const auto& [pid, count] : later.counts.switches_by_process) counts.switches_by_process[pid] += count;
}

TraceLoop::TraceLoop(std::shared_ptr<DriverDoor> door, TraceOptions options, const Clock& clock)
    : door_(std::move(door)), options_(std::move(options)), clock_(clock), retry_delay_(kFirstRetry) {}

TraceReport TraceLoop::take_report() {
  TraceReport report;
  report.tracing = tracing_ || resting_;
  report.trouble = trouble_;
  report.given_up = given_up_;
  report.bins = builder_.take_bins();
  report.records = stream_.records() - reported_records_;
  report.lost = stream_.lost() - reported_lost_;
  report.counts = builder_.take_counts();
  reported_records_ = stream_.records();
  reported_lost_ = stream_.lost();
  return report;
}

Nanoseconds TraceLoop::step() {
  const Nanoseconds now = clock_.now().steady;
  if (given_up_) return now + kNever;
  if (!session_ && now < retry_at_) return retry_at_;
  Status done = session_ ? ok_status() : open();
  if (done.ok() && resting_ && now < paused_until_) return paused_until_;
  if (done.ok() && !tracing_) done = begin_burst(now);
  if (done.ok()) done = poll(now);
  if (!done.ok()) {
    fail(done.error(), now);
    return given_up_ ? now + kNever : retry_at_;
  }
  const Nanoseconds pause = weigh_cost(now);
  if (pause == Nanoseconds(0)) return now + kPollPeriod;
  end_burst(now);
  return paused_until_ = now + pause;
}

Nanoseconds TraceLoop::weigh_cost(Nanoseconds now) {
  const Nanoseconds counted = now - counted_since_;
  if (counted < kBurst) return Nanoseconds(0);
  const uint64_t records = stream_.records() + stream_.lost();  // a lost one had the same cost
  const double switches = static_cast<double>(records - counted_records_) / kRecordsPerSwitch;
  const double cost = switches * kSecondsPerSwitch / std::chrono::duration<double>(counted).count();
  counted_since_ = now;
  counted_records_ = records;
  if (cost <= options_.budget) return Nanoseconds(0);
  const auto traced = static_cast<double>((counted + session_->branch().delivery).count());
  const double pause = traced * (cost / options_.budget - 1);
  const auto longest = static_cast<double>(kLongestPause.count());
  return std::max(kShortestPause, Nanoseconds(static_cast<int64_t>(std::min(pause, longest))));
}

Status TraceLoop::open() {
  GL_TRY(address, parse_bus_address(options_.bus_address));
  GL_TRY(session, TraceSession::open(door_, address));
  session_ = std::move(session);
  return ok_status();
}

Status TraceLoop::begin_burst(Nanoseconds now) {
  {
    // The driver checks it once, here: without it other users' processes have no pid.
    const RaisedSysAdmin raised;
    GL_TRY_STATUS(session_->start());
  }
  gpu_clock_ = GpuClock();
  GL_TRY_STATUS(compare_clocks(now));
  stream_.restart();
  builder_.begin(clock_.now().steady);
  last_poll_ = last_given_back_ = now;
  // What is read until then may be older. The cost of a burst may so be taken for higher than it was, never for lower.
  counted_since_ = now + session_->branch().delivery;
  counted_records_ = stream_.records() + stream_.lost();
  tracing_ = true;
  resting_ = false;
  trouble_.clear();
  return ok_status();
}

void TraceLoop::end_burst(Nanoseconds now) {
  builder_.end(now - session_->branch().delivery);
  session_->stop();
  tracing_ = false;
  resting_ = true;
}

Status TraceLoop::compare_clocks(Nanoseconds now) {
  if (gpu_clock_.known() && now - gpu_clock_.last_compared() < kComparePeriod) return ok_status();
  for (int tries = 1;; ++tries) {
    GL_TRY(pair, session_->read_clocks(clock_));
    if (pair.width > kLongestCompare && tries < kCompareTries) continue;
    // After the machine slept, the sequence starts anew too.
    if (!gpu_clock_.compare(pair)) {
      builder_.lose_track();
      stream_.restart();
    }
    return ok_status();
  }
}

Status TraceLoop::poll(Nanoseconds now) {
  if (flush_always_ || std::exchange(flush_once_, false)) { GL_TRY_STATUS(session_->flush()); }
  GL_TRY_STATUS(compare_clocks(now));
  GL_TRY_STATUS(read_records(now));
  builder_.complete_until(now - session_->branch().delivery);
  last_poll_ = now;
  retry_delay_ = kFirstRetry;
  return give_back(now);
}

Status TraceLoop::read_records(Nanoseconds now) {
  records_.clear();
  GL_TRY_STATUS(session_->ring().read(records_));
  for (const SwitchRecord& record : records_) {
    GL_TRY_STATUS(stream_.take(record, gpu_clock_, builder_));
    const Nanoseconds at = stream_.last_at().value_or(now);
    if (at > now + kFarOff) return Error{Code::kUnavailable, "the trace is ahead of the GPU's clock"};
    // The kernel's timer may have stopped: another reader that fails to start stops it.
    if (now - at > now - last_poll_ + session_->branch().delivery + kFarOff) flush_always_ = true;
  }
  // The ring was full. The time after its last record is unknown until the next one shows the loss.
  if (const uint64_t drops = session_->ring().drops(); drops > 0) {
    stream_.note_drops(drops);
    builder_.lose_track();
  }
  return ok_status();
}

Status TraceLoop::give_back(Nanoseconds now) {
  SwitchRing& ring = session_->ring();
  const bool much = ring.not_given_back() >= ring.size() / 4;
  const bool some = ring.not_given_back() > 0 && now - last_given_back_ >= kGiveBackPeriod;
  if (!much && !some) return ok_status();
  last_given_back_ = now;
  return session_->give_back_records();
}

void TraceLoop::fail(const Error& error, Nanoseconds now) {
  if (tracing_) builder_.end(builder_.decided_until());
  tracing_ = resting_ = flush_always_ = false;
  session_.reset();
  gpu_clock_ = GpuClock();
  trouble_ = error.message;
  given_up_ = is_for_good(error.code);
  retry_at_ = now + retry_delay_;
  retry_delay_ = std::min(retry_delay_ * 2, kLastRetry);
}

}  // namespace gpuledger::switch_trace
