// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/mps_fit.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

namespace gpuledger::attribute {
namespace {

// Bounds of the cost of a fit.
constexpr size_t kMostFitted = 240;
constexpr size_t kWindowsToSweep = 480;  // in all sweeps of a fit
constexpr size_t kMostSweeps = 10;
constexpr size_t kMostWork = 61440;
constexpr int kNewcomerRounds = 8;
constexpr int kSignatureRounds = 3;
constexpr double kLeastTime = 1e-3;
constexpr double kUnknownFrom = 1e6;  // variance of a feature
}  // namespace

MpsFit::MpsFit(const Constants& constants, const Belief& prior) : constants_(constants) {
  mean_.head<kFeatures>() = prior.mean;
  precision_.topLeftCorner<kFeatures, kFeatures>() = prior.covariance.inverse();
  shift_ = (precision_ * mean_.matrix()).array();
}

size_t MpsFit::reach(const std::deque<Window>& history) {
  size_t reach = 0, windows = 0, work = 0;
  for (size_t age = 0; age < history.size() && windows < kMostFitted; ++age) {
    const Window& window = history[history.size() - 1 - age];
    if (!window.company->mps) continue;
    work += work_of(window.parts.size());
    if (windows > 0 && work > kMostWork) break;
    ++windows;
    reach = age + 1;
  }
  return reach;
}

size_t MpsFit::fit(std::deque<Window>& history) {
  const size_t windows = reach(history);
  gather(history, windows);
  meet_newcomers();
  size_t work = 0;
  for (const Row& row : rows_) work += work_of(row.count);
  const size_t sweeps = std::min({kMostSweeps, kWindowsToSweep / rows_.size(), kMostWork / work});
  for (size_t sweep = 0; sweep < std::max<size_t>(1, sweeps); ++sweep) {
    for (Row& row : rows_) move_times(row);
    for (const auto& [account, client] : clients_) move_levels(client);
    move_signatures(0);
    for (auto& [account, client] : clients_) move_scale(client);
  }
  charge(history, windows);
  return windows;
}

void MpsFit::gather(const std::deque<Window>& history, size_t windows) {
  rows_.clear();
  times_.clear();
  for (auto& [account, client] : clients_) client = {client.signature};
  const Window* before = nullptr;
  for (size_t i = 0; i < history.size(); ++i) {
    const Window& window = history[i];
    if (!window.company->mps) continue;
    if (i + windows >= history.size()) add_row(window, before);
    if (!window.blind) before = &window;
  }
  std::erase_if(clients_, [](const auto& entry) { return entry.second.first == kNone; });
}

// before: the last window with readings, if any.
void MpsFit::add_row(const Window& window, const Window* before) {
  Row& row = rows_.emplace_back();
  const double seconds = std::max(0.1, window.seconds());
  for (int f = 0; f < kFeatures; ++f) {
    if (window.blind || window.variance[f] >= kUnknownFrom) continue;
    const bool jumped = before && before->variance[f] < kUnknownFrom;
    const double jump = jumped ? window.shown[f] - before->shown[f] : 0;
    row.left[f] = window.shown[f];
    row.weight[f] = 1 / (square(constants_.mps_reading_error) * (1 + 1 / seconds) +
                         square(constants_.mps_relative_error * window.shown[f]) +
                         square(constants_.mps_timing_error * jump / seconds));
  }
  const double most = std::max(kLeastTime, constants_.mps_most * window.busy);
  row.most = {most, std::log(most)};
  row.first = times_.size();
  row.count = window.parts.size();
  for (const Window::Part& part : window.parts) add_time(part, window.busy);
}

void MpsFit::add_time(const Window::Part& part, double busy) {
  Row& row = rows_.back();
  Client& client = clients_.try_emplace(part.account, Client{mean_}).first->second;
  const size_t last = client.last;
  double now = last == kNone ? constants_.mps_first_time : times_[last].now.time;
  if (part.time > 0) now = part.time;  // by the last fit
  now = row.shared() ? std::clamp(now, kLeastTime, row.most.time) : busy;
  (last == kNone ? client.first : times_[last].after) = client.last = times_.size();
  client.alone |= !row.shared();
  row.left -= now * client.signature;
  times_.push_back({{now, std::log(now)}, 0, 0, rows_.size() - 1, &client, last});
}

// A first guess of their signatures from the newest window alone.
void MpsFit::meet_newcomers() {
  Row& newest = rows_.back();
  const auto is_new = [&](const auto& entry) { return entry.second.first >= newest.first; };
  if (!newest.shared() || std::none_of(clients_.begin(), clients_.end(), is_new)) return;
  for (int round = 0; round < kNewcomerRounds; ++round) {
    move_times(newest);
    move_signatures(rows_.size() - 1);
  }
}

// The least of 1/2 curvature t^2 - pull t + sum of |log t - log of the time before or after| / mps_change.
MpsFit::Point MpsFit::best(double curvature, double pull, const Point& now, const Point& most, size_t before,
                           size_t after) const {
  const double per_change = 1 / constants_.mps_change;
  Point near[2];
  int count = 0;
  if (before != kNone) near[count++] = times_[before].now;
  if (after != kNone) near[count++] = times_[after].now;
  const auto cost = [&](const Point& point) {
    double changes = 0;
    for (int i = 0; i < count; ++i) changes += std::abs(point.log - near[i].log);
    return (curvature / 2 * point.time - pull) * point.time + per_change * changes;
  };
  constexpr double kLeastGain = 1e-12;
  static const Point kLeast{kLeastTime, std::log(kLeastTime)};
  Point best = now;
  double least = cost(now) - kLeastGain;
  const auto consider = [&](const Point& point) {
    const double its = cost(point);
    if (its < least) {
      least = its;
      best = point;
    }
  };
  consider(kLeast);
  consider(most);
  for (int i = 0; i < count; ++i) {
    if (near[i].time > kLeastTime && near[i].time < most.time) consider(near[i]);
  }
  // Where the slope is 0. above: how many more of the neighbours are shorter than longer.
  for (int above = -count; curvature > 0 && above <= count; above += 2) {
    const double root = square(pull) - 4 * curvature * above * per_change;
    if (root < 0) continue;
    const double time = (pull + std::sqrt(root)) / (2 * curvature);
    if (time > kLeastTime && time < most.time) consider({time, std::log(time)});
  }
  return best;
}

void MpsFit::move_times(Row& row) {
  if (!row.shared()) return;
  for (size_t i = row.first; i < row.first + row.count; ++i) {
    Time& time = times_[i];
    const Lanes& signature = time.client->signature;
    const Lanes weighted = row.weight * signature;
    time.curvature = (weighted * signature).sum();
    const double pull = (weighted * row.left).sum() + time.curvature * time.now.time;
    const Point moved = best(time.curvature, pull, time.now, row.most, time.before, time.after);
    row.left -= (moved.time - time.now.time) * signature;
    time.now = moved;
  }
}

// Equal times one after the other only move together.
void MpsFit::move_levels(const Client& client) {
  constexpr double kSame = 1e-9;
  for (size_t begin = client.first, end; begin != kNone; begin = end) {
    const Point now = times_[begin].now;
    double curvature = 0, pull = 0;
    Point most = rows_[times_[begin].row].most;
    bool shared = true;
    size_t count = 0;
    for (end = begin; end != kNone && std::abs(times_[end].now.time - now.time) < kSame; end = times_[end].after) {
      const Row& row = rows_[times_[end].row];
      curvature += times_[end].curvature;
      pull += (row.weight * client.signature * row.left).sum();
      if (row.most.time < most.time) most = row.most;
      shared = shared && row.shared();
      ++count;
    }
    if (count < 2 || !shared) continue;
    const Point moved = best(curvature, pull + curvature * now.time, now, most, times_[begin].before, end);
    if (moved.time == now.time) continue;
    for (size_t i = begin; i != end; i = times_[i].after) {
      rows_[times_[i].row].left -= (moved.time - times_[i].now.time) * client.signature;
      times_[i].now = moved;
    }
  }
}

// Errors of the times of a window, if the signatures and the times before and after are known.
void MpsFit::find_spread(Row& row) {
  Time* times = &times_[row.first];
  for (size_t i = 0; i < row.count; ++i) {
    double precision = 1 / square(constants_.mps_time_spread);
    for (const size_t near : {times[i].before, times[i].after}) {
      if (near == kNone) continue;
      const double change = std::abs(times[i].now.log - times_[near].now.log) + constants_.mps_softness;
      precision += 1 / (constants_.mps_change * change);
    }
    times[i].variance = 1 / (times[i].curvature + precision / square(times[i].now.time));
  }
  if (row.count > kMostTogether) return;
  row.spread.resize(row.count, row.count);
  for (size_t i = 0; i < row.count; ++i) {
    const Lanes weighted = row.weight * times[i].client->signature;
    row.spread(i, i) = 1 / times[i].variance;
    for (size_t j = 0; j < i; ++j) row.spread(i, j) = row.spread(j, i) = (weighted * times[j].client->signature).sum();
  }
  row.spread = row.spread.inverse().eval();
  for (size_t i = 0; i < row.count; ++i) times[i].variance = row.spread(i, i);
}

// Of clients that came with this row or later.
void MpsFit::move_signatures(size_t since) {
  for (size_t i = since; i < rows_.size(); ++i) {
    if (rows_[i].shared()) find_spread(rows_[i]);
  }
  for (int round = 0; round < kSignatureRounds; ++round) {
    for (auto& [account, client] : clients_) {
      if (client.first >= rows_[since].first) move_signature(client);
    }
  }
}

// Least squares with no feature below 0, for times that are not known exactly.
void MpsFit::move_signature(Client& client) {
  Lanes curvature = precision_.diagonal().array();
  Lanes pull = shift_;
  for (size_t i = client.first; i != kNone; i = times_[i].after) {
    const Row& row = rows_[times_[i].row];
    const double time = times_[i].now.time;
    Lanes left = time * row.left;
    if (row.spread.size() == 0) left -= times_[i].variance * client.signature;
    for (Eigen::Index j = 0; j < row.spread.rows(); ++j)
      left -= row.spread(j, i - row.first) * times_[row.first + j].client->signature;
    curvature += row.weight * (square(time) + times_[i].variance);
    pull += row.weight * left;
  }
  const Lanes old = client.signature;
  for (int f = 0; f < kFeatures; ++f) {
    const double slope = pull[f] - precision_.col(f).dot(client.signature.matrix());
    client.signature[f] = std::max(0.0, client.signature[f] + slope / curvature[f]);
  }
  const Lanes change = client.signature - old;
  for (size_t i = client.first; i != kNone; i = times_[i].after)
    rows_[times_[i].row].left -= times_[i].now.time * change;
}

// Longer times and a smaller signature explain the same: both are moved at once, to what the prior says.
void MpsFit::move_scale(Client& client) {
  if (client.alone) return;
  double least = 0, most = HUGE_VAL;
  for (size_t i = client.first; i != kNone; i = times_[i].after) {
    least = std::max(least, kLeastTime / times_[i].now.time);
    most = std::min(most, rows_[times_[i].row].most.time / times_[i].now.time);
  }
  const auto signature = client.signature.matrix();
  const double square_term = signature.dot(precision_ * signature);
  const double linear_term = shift_.matrix().dot(signature);
  const auto cost = [&](double scale) { return square_term / 2 / square(scale) - linear_term / scale; };
  constexpr double kLeastTerm = 1e-9;
  const double scale = std::max(least, std::min(most, square_term / std::max(kLeastTerm, linear_term)));
  constexpr double kLeastGain = 1e-9;
  if (!(cost(scale) < cost(1) - kLeastGain)) return;
  client.signature /= scale;
  for (size_t i = client.first; i != kNone; i = times_[i].after) {
    const double time = std::min(times_[i].now.time * scale, rows_[times_[i].row].most.time);
    times_[i].now = {time, std::log(time)};
  }
}

void MpsFit::charge(std::deque<Window>& history, size_t windows) const {
  constexpr double kLeastShare = 1e-9;  // nobody spent anything: equal parts
  auto row = rows_.begin();
  for (size_t i = history.size() - windows; i < history.size(); ++i) {
    Window& window = history[i];
    if (!window.company->mps) continue;
    double sum = 0;
    for (size_t k = 0; k < row->count; ++k) {
      const Time& time = times_[row->first + k];
      window.parts[k].time = time.now.time;
      window.parts[k].joules = time.now.time * time.client->signature[kPower] + kLeastShare;
      sum += window.parts[k].joules;
    }
    for (Window::Part& part : window.parts) part.joules *= window.joules / sum;
    ++row;
  }
}

}  // namespace gpuledger::attribute
