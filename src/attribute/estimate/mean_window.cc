// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/mean_window.h"

#include <algorithm>
#include <vector>

namespace gpuledger::attribute {
namespace {

bool comparable(const Window& a, const Window& b) {
  // A process whose owner became known has another account since: its earlier windows stay where they are.
  const auto same = [](const Roster::Seat& x, const Roster::Seat& y) {
    return x.belief == y.belief && x.account == y.account;
  };
  return a.traced == b.traced && a.blind == b.blind && a.roster->mps == b.roster->mps &&
         std::equal(a.roster->seats().begin(), a.roster->seats().end(), b.roster->seats().begin(),
                    b.roster->seats().end(), same);
}

struct MessageSum {
  FeatureMatrix precision = FeatureMatrix::Zero();
  Features shift = Features::Zero();
};

void add(const Window& window, Window& sum, std::vector<MessageSum>& messages) {
  ++sum.windows;
  sum.seconds += window.seconds;
  sum.busy += window.busy;
  sum.shown += window.shown;
  sum.variance += window.variance;
  for (size_t i = 0; i < window.parts.size(); ++i) {
    const Window::Part& part = window.parts[i];
    sum.parts[i].share += part.share;
    sum.parts[i].share_variance += part.share_variance;
    sum.parts[i].traced_time += part.traced_time;
    sum.parts[i].traced_idle += part.traced_idle;
    messages[i].precision += part.message.precision();
    messages[i].shift += part.message.shift();
  }
}

}  // namespace

Window mean_window(const std::deque<Window>& history, const Window& newest, size_t most) {
  Window mean;
  mean.roster = newest.roster;
  mean.traced = newest.traced;
  mean.blind = newest.blind;
  mean.busy = 0;
  mean.windows = 0;
  mean.parts.resize(newest.parts.size());
  std::vector<MessageSum> messages(newest.parts.size());
  add(newest, mean, messages);
  for (auto past = history.rbegin(); past != history.rend() && mean.windows < most; ++past) {
    if (!comparable(*past, newest)) break;
    add(*past, mean, messages);
  }
  const auto count = static_cast<double>(mean.windows);
  for (double* sum : {&mean.seconds, &mean.busy}) *sum /= count;
  for (Features* sum : {&mean.shown, &mean.variance}) *sum /= count;
  for (size_t i = 0; i < mean.parts.size(); ++i) {
    Window::Part& part = mean.parts[i];
    for (double* sum : {&part.share, &part.share_variance, &part.traced_time, &part.traced_idle}) *sum /= count;
    part.message = Message(messages[i].precision, messages[i].shift);
  }
  return mean;
}

}  // namespace gpuledger::attribute
