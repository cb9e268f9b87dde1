// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "attribute/estimate/constants.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Clients of MPS run side by side, and nothing tells their times. Over some minutes the readings do: a client has one
// signature and its time seldom changes. Signatures and times of the last windows are fitted together, again after each
// window. The cost is the squared misfit of the readings, the changes of log(time), and the distance of the signatures
// from the prior.
class MpsFit {
 public:
  MpsFit(const Constants& constants, const Belief& prior);
  // How many windows from the end of the history the next fit changes.
  static size_t reach(const std::deque<Window>& history);
  // Fits the newest windows under MPS once more; history.back() is new and under MPS. Returns how many windows from the
  // end of the history may have other joules now.
  size_t fit(std::deque<Window>& history);

 private:
  static constexpr size_t kNone = SIZE_MAX;
  static constexpr int kLanes = 8;  // the features, and a 0
  using Lanes = Eigen::Array<double, kLanes, 1>;
  // With more clients the covariances of their times are left out.
  static constexpr int kMostTogether = 8;
  using Covariance = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMostTogether, kMostTogether>;

  struct Point {
    double time = 0;
    double log = 0;
  };
  struct Client {
    Lanes signature;
    size_t first = kNone;  // of its times
    size_t last = kNone;
    bool alone = false;  // in some window
  };
  // Of one client in one window.
  struct Time {
    Point now;
    double curvature = 0;  // of the misfit
    double variance = 0;
    size_t row = 0;
    Client* client = nullptr;
    size_t before = kNone;  // the client's last time and next time
    size_t after = kNone;
  };
  struct Row {
    Lanes weight = Lanes::Zero();
    Lanes left = Lanes::Zero();  // of the readings, explained by nobody
    Point most;                  // longest time
    size_t first = 0;            // of its times
    size_t count = 0;
    Covariance spread;  // of its times; empty with many clients
    bool shared() const { return count > 1; }
  };

  static size_t work_of(size_t clients) { return clients * std::min<size_t>(clients, kMostTogether); }
  void gather(const std::deque<Window>& history, size_t windows);
  void add_row(const Window& window, const Window* before);
  void add_time(const Window::Part& part, double busy);
  void meet_newcomers();
  void move_times(Row& row);
  void move_levels(const Client& client);
  void find_spread(Row& row);
  void move_signatures(size_t since);
  void move_signature(Client& client);
  void move_scale(Client& client);
  Point best(double curvature, double pull, const Point& now, const Point& most, size_t before, size_t after) const;
  void charge(std::deque<Window>& history, size_t windows) const;

  const Constants constants_;
  Lanes mean_ = Lanes::Zero();  // of the prior
  Eigen::Matrix<double, kLanes, kLanes> precision_ = Eigen::Matrix<double, kLanes, kLanes>::Zero();
  Lanes shift_;                         // precision x mean
  std::map<uint64_t, Client> clients_;  // by account
  std::vector<Row> rows_;               // of the windows in the fit, oldest first
  std::vector<Time> times_;
};

}  // namespace gpuledger::attribute
