#include "sample/nvml/nvml_utilization.h"

#include <algorithm>
#include <map>

namespace gpuledger::nvml {

namespace {

constexpr int kMostTries = 4;
constexpr unsigned kMostEntries = 1u << 16;
constexpr unsigned kMostPid = 1u << 22;
constexpr int64_t kSecond = 1'000'000;  // us
// The driver keeps 14 s at most: who says nothing for longer than that and still has entries was asked wrongly.
constexpr Nanoseconds kRecheckIdle = std::chrono::seconds(30);

int64_t microseconds(Nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

unsigned grown(unsigned capacity, unsigned wanted) {
  return std::min(kMostEntries, std::max(capacity * 2, wanted));
}

}  // namespace

UtilizationReader::Reply UtilizationReader::fetch_newer(Session& session, Device device, int64_t since) {
  Reply reply{kInsufficientSize, {}};
  std::vector<ProcessUtilizationInfo> buffer;
  ProcessesUtilizationInfo request{};
  for (int attempt = 0; attempt < kMostTries && reply.result == kInsufficientSize; ++attempt) {
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
  for (int attempt = 0; attempt < kMostTries && reply.result == kInsufficientSize; ++attempt) {
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

// The newer call first: on some Blackwell drivers the older one answers nothing at all.
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
                                                               int64_t since) {
  std::map<Pid, Entry> by_pid;
  for (const Entry& e : entries) {
    // Zombie contexts leave junk: percentages in the millions, old timestamps, pids that cannot be.
    if (e.pid > kMostPid || std::max({e.sm, e.memory, e.encoder, e.decoder, e.jpeg, e.ofa}) > 100) {
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
  return microseconds(now.wall) - offset_.value_or(0);
}

// The newest sample is up to a sampling period old, so the smallest difference is the truest; it may grow a
// little, since the two clocks need not run at one speed.
void UtilizationReader::learn_offset(Timestamp now, int64_t newest) {
  int64_t offset = microseconds(now.wall) - newest;
  if (offset_) offset = std::min(offset, *offset_ + microseconds(now.steady - offset_learned_) / 1000);
  offset_ = offset;
  offset_learned_ = now.steady;
}

// Nobody was active. The next reply must not be a mean over this idle time too, so the timestamp moves on
// although no sample gave one; it stays a second behind for samples that the driver hands out late.
void UtilizationReader::note_idle(Timestamp now) {
  if (!idle_since_ || now.steady - *idle_since_ > kRecheckIdle) idle_since_ = now.steady;
  if (!offset_) return;
  idle_until_ = driver_now(now);
  last_seen_ = std::max(last_seen_, *idle_until_ - kSecond);
}

// The second that note_idle stays behind is known to be idle: the mean is spread over it, so put it back.
// One sample names one process, so all of them together are never busy more than all the time.
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

UtilizationReply UtilizationReader::read(Session& session, Device device, Nanoseconds sample_interval) {
  UtilizationReply out;
  if (interface_ == Interface::kNone) {
    out.state = UtilizationState::kUnsupported;
    return out;
  }
  const Timestamp now = session.call.now();
  const Nanoseconds interval =
      previous_read_ ? std::min(now.steady - *previous_read_, sample_interval) : sample_interval;
  // A clock that was set may leave last_seen_ in the future, where nobody is ever found.
  const bool recheck = idle_since_ && now.steady - *idle_since_ > kRecheckIdle;
  int64_t since = recheck ? 0 : last_seen_;
  Reply reply = fetch(session, device, since);
  std::vector<Entry> entries = clean(session, reply.entries, since);
  if (reply.result == kSuccess && !entries.empty() && since == 0) {
    // All of the driver's history: good for learning its clock, then ask again for our own part of it.
    int64_t newest = 0;
    for (const Entry& e : entries) newest = std::max(newest, e.timestamp);
    offset_.reset();
    idle_until_.reset();
    learn_offset(now, newest);
    since = last_seen_ = std::max<int64_t>(0, newest - microseconds(interval));
    reply = fetch(session, device, since);
    entries = clean(session, reply.entries, since);
  }
  out.result = reply.result;
  if (means_unsupported(reply.result)) {
    out.state = UtilizationState::kUnsupported;
    return out;
  }
  if (reply.result != kSuccess && reply.result != kNotFound) {
    session.call.count_failure(reply.result);
    return out;
  }
  out.state = UtilizationState::kKnown;
  previous_read_ = now.steady;
  if (entries.empty()) {
    note_idle(now);
    return out;
  }
  const double scale = idle_scale(now, since, entries);
  const auto ratio = [&](unsigned percent) { return Ratio{percent * scale / 100}; };
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
