// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_utilization.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

namespace gpuledger::nvml {

namespace {

constexpr int kMostSampleTries = 4;
constexpr unsigned kMostSamples = 1u << 16;
constexpr int64_t kSecond = 1'000'000;  // us
// The driver keeps at most 14 s. If it names no process for longer, the timestamp may be wrong.
constexpr Nanoseconds kRecheckIdle = std::chrono::seconds(30);
constexpr Nanoseconds kHistory = std::chrono::seconds(15);
constexpr int64_t kAhead = 3 * kSecond;    // samples further ahead are invalid
constexpr int64_t kClockWasSet = kSecond;  // no clock drifts so far between two comparisons

unsigned grown(unsigned capacity, unsigned wanted) {
  return std::min(kMostSamples, std::max(capacity * 2, wanted));
}

}  // namespace

UtilizationReader::Reply UtilizationReader::fetch_newer(Session& session, Device device, int64_t since) {
  Reply reply{kInsufficientSize, {}};
  std::vector<ProcessUtilizationInfo> buffer;
  ProcessesUtilizationInfo request{};
  for (int attempt = 0; attempt < kMostSampleTries && reply.result == kInsufficientSize; ++attempt) {
    buffer.assign(capacity_, {});
    request = {kProcessesUtilizationInfoVersion1, capacity_, static_cast<unsigned long long>(since), buffer.data()};
    reply.result = session.call(session.fn.nvmlDeviceGetProcessesUtilizationInfo, device, &request);
    if (reply.result == kInsufficientSize) capacity_ = grown(capacity_, request.processSamplesCount);
  }
  if (reply.result != kSuccess) return reply;
  buffer.resize(std::min<size_t>(buffer.size(), request.processSamplesCount));
  for (const ProcessUtilizationInfo& e : buffer) {
    reply.entries.push_back(
        {static_cast<int64_t>(e.timeStamp), e.pid, e.smUtil, e.memUtil, e.encUtil, e.decUtil, e.jpgUtil, e.ofaUtil});
  }
  return reply;
}

UtilizationReader::Reply UtilizationReader::fetch_older(Session& session, Device device, int64_t since) {
  Reply reply{kInsufficientSize, {}};
  std::vector<ProcessUtilizationSample> buffer;
  unsigned count = 0;
  for (int attempt = 0; attempt < kMostSampleTries && reply.result == kInsufficientSize; ++attempt) {
    buffer.assign(capacity_, {});
    count = capacity_;
    reply.result = session.call(session.fn.nvmlDeviceGetProcessUtilization, device, buffer.data(), &count,
                                static_cast<unsigned long long>(since));
    if (reply.result == kInsufficientSize) capacity_ = grown(capacity_, count);
  }
  if (reply.result != kSuccess) return reply;
  buffer.resize(std::min<size_t>(buffer.size(), count));
  for (const ProcessUtilizationSample& e : buffer) {
    reply.entries.push_back(
        {static_cast<int64_t>(e.timeStamp), e.pid, e.smUtil, e.memUtil, e.encUtil, e.decUtil, 0, 0});
  }
  return reply;
}

// The newer call first: on some Blackwell drivers the older one returns nothing at all.
UtilizationReader::Reply UtilizationReader::fetch(Session& session, Device device, int64_t since) {
  if (interface_ == Interface::kUndecided || interface_ == Interface::kNewer) {
    Reply reply = fetch_newer(session, device, since);
    if (!means_unsupported(reply.result)) {
      if (reply.result == kSuccess || reply.result == kNotFound) interface_ = Interface::kNewer;
      return reply;
    }
    interface_ = Interface::kOlder;
  }
  if (interface_ == Interface::kOlder) {
    Reply reply = fetch_older(session, device, since);
    if (!means_unsupported(reply.result)) return reply;
    interface_ = Interface::kNone;
  }
  return {kNotSupported, {}};
}

std::vector<UtilizationReader::Entry> UtilizationReader::clean(Session& session, const std::vector<Entry>& entries,
                                                               int64_t since, int64_t latest) {
  std::map<Pid, Entry> by_pid;
  for (const Entry& e : entries) {
    // Zombie contexts leave garbage: percentages in the millions, timestamps far off, impossible pids.
    if (e.pid > kMostPid || e.timestamp > latest ||
        std::max({e.sm, e.memory, e.encoder, e.decoder, e.jpeg, e.ofa}) > 100) {
      session.call.count_failure("garbage");
      continue;
    }
    if (e.pid == 0 || e.timestamp <= since) continue;
    Entry& kept = by_pid[e.pid];
    if (e.timestamp > kept.timestamp) kept = e;
  }
  std::vector<Entry> kept;
  for (const auto& [pid, entry] : by_pid) kept.push_back(entry);
  return kept;
}

int64_t UtilizationReader::driver_now(Timestamp now) const {
  return micros(now.steady) + offset_.value_or(0);
}

int64_t UtilizationReader::clock_step(Timestamp now) const {
  const int64_t step = offset_ ? micros((now.wall - now.steady) - (learned_.wall - learned_.steady)) : 0;
  return std::abs(step) > kClockWasSet ? step : 0;
}

// Latest possible time of a sample. If the wall clock was set forward or the machine slept, the driver's may have moved
// too.
int64_t UtilizationReader::latest_possible(Timestamp now) const {
  if (!offset_) return std::numeric_limits<int64_t>::max();
  return driver_now(now) + std::max<int64_t>(0, clock_step(now)) + kAhead;
}

// The newest sample is up to a period old, so the largest difference is the best; it may shrink slowly, because the two
// clocks may run at different speeds.
void UtilizationReader::learn_offset(Timestamp now, int64_t newest) {
  int64_t offset = newest - micros(now.steady);
  if (offset_ && clock_step(now) == 0)
    offset = std::max(offset, *offset_ - micros(now.steady - learned_.steady) / 1000);
  offset_ = offset;
  learned_ = now;
}

// The wall clock was set back. If the driver's clock follows it, its history has two times that cannot be told apart,
// and new samples look older than seen ones; a driver with its own clock is not affected. An empty reply means nothing
// until the driver shows which case it is, or until its history is all new.
bool UtilizationReader::history_is_torn(Timestamp now, bool anybody) {
  if (clock_step(now) >= 0 || anybody) {
    torn_since_.reset();
    return false;
  }
  if (!torn_since_) torn_since_ = now.steady;
  return true;
}

// No process was active. The next reply must not be a mean over this idle time too, so the timestamp moves on without a
// sample; it stays a second behind for samples that the driver delivers late.
void UtilizationReader::note_idle(Timestamp now) {
  if (!idle_since_ || now.steady - *idle_since_ > kRecheckIdle) idle_since_ = now.steady;
  if (!offset_) return;
  idle_until_ = driver_now(now);
  last_seen_ = std::max(last_seen_, *idle_until_ - kSecond);
}

void UtilizationReader::note_calm(Timestamp now) {
  if (idle_until_) idle_until_ = driver_now(now);
}

// The second that note_idle stays behind was idle, and the mean includes it: scale the mean up. One sample names one
// process, so that all together are never busy for more than 100 %.
double UtilizationReader::idle_scale(Timestamp now, int64_t since, const std::vector<Entry>& entries) const {
  if (!idle_until_ || since >= *idle_until_) return 1;
  const int64_t fresh = driver_now(now) - *idle_until_;
  if (fresh < kSecond / 5) return 1;
  unsigned most = 0, sm = 0;
  for (const Entry& e : entries) {
    sm += e.sm;
    most = std::max({most, e.memory, e.encoder, e.decoder, e.jpeg, e.ofa});
  }
  most = std::max(most, sm);
  const double scale = static_cast<double>(driver_now(now) - since) / static_cast<double>(fresh);
  return most == 0 ? 1 : std::max(1.0, std::min(scale, 100.0 / most));
}

// Reads all of the driver's history to learn its clock; then it is read again for our own part.
UtilizationReader::Reply UtilizationReader::fetch_first(Session& session, Device device, Timestamp now,
                                                        Nanoseconds interval) {
  const Reply history = fetch(session, device, 0);
  if (history.result != kSuccess) return history;
  // Drivers count since 1970 or since boot, so samples later than our clock are garbage, unless all are.
  int64_t newest = 0, newest_of_all = 0;
  for (const Entry& e : clean(session, history.entries, 0, std::numeric_limits<int64_t>::max())) {
    newest_of_all = std::max(newest_of_all, e.timestamp);
    if (e.timestamp <= micros(now.wall) + kAhead) newest = std::max(newest, e.timestamp);
  }
  if (newest == 0) newest = newest_of_all;
  if (newest == 0) return history;
  offset_.reset();
  idle_until_.reset();
  torn_since_.reset();
  learn_offset(now, newest);
  last_seen_ = std::max<int64_t>(0, newest - micros(interval));
  return fetch(session, device, last_seen_);
}

UtilizationReply UtilizationReader::read(Session& session, Device device, Nanoseconds sample_interval) {
  UtilizationReply out;
  if (interface_ == Interface::kNone) {
    out.state = UtilizationState::kUnsupported;
    return out;
  }
  const Timestamp now = session.call.now();
  const Nanoseconds interval =
      previous_read_ ? std::min(now.steady - *previous_read_, sample_interval) : sample_interval;
  // If the driver's clock was set, last_seen_ may be in the future, where no process is found.
  const bool recheck = idle_since_ && now.steady - *idle_since_ > kRecheckIdle;
  const bool all_new = torn_since_ && now.steady - *torn_since_ >= kHistory;
  const bool first = recheck || all_new || last_seen_ == 0;
  const Reply reply = first ? fetch_first(session, device, now, interval) : fetch(session, device, last_seen_);
  const int64_t since = last_seen_;
  const std::vector<Entry> entries = clean(session, reply.entries, since, latest_possible(now));
  out.result = reply.result;
  if (means_unsupported(reply.result)) {
    out.state = UtilizationState::kUnsupported;
    return out;
  }
  if (reply.result != kSuccess && reply.result != kNotFound) {
    session.call.count_failure(reply.result);
    return out;
  }
  if (!first && history_is_torn(now, !entries.empty())) {
    session.call.count_failure("clock_set");
    return out;
  }
  out.state = UtilizationState::kKnown;
  previous_read_ = now.steady;
  if (entries.empty()) {
    note_idle(now);
    return out;
  }
  const double scale = idle_scale(now, since, entries);
  const auto ratio = [&](unsigned percent) { return Ratio::of_percent(percent * scale); };
  for (const Entry& e : entries) {
    out.uses.emplace_back(e.pid, EngineUse{ratio(e.sm), ratio(e.memory), ratio(e.encoder), ratio(e.decoder),
                                           ratio(e.jpeg), ratio(e.ofa)});
    last_seen_ = std::max(last_seen_, e.timestamp);
  }
  learn_offset(now, last_seen_);
  idle_since_.reset();
  idle_until_.reset();
  return out;
}

}  // namespace gpuledger::nvml
