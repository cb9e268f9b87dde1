// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "attribute/estimate/window.h"

// The part of a window that time evidence decides.
namespace gpuledger::attribute {
namespace {

// Residency longer than the busy time: contexts were resident without work, and no other process waited.
void by_trace(Window& window, const Constants& constants) {
  double traced = 0;
  for (const Window::Part& part : window.parts) traced += part.traced_time;
  const double working = traced > 0 ? std::min(1.0, window.busy / traced) : 1;
  for (Window::Part& part : window.parts) {
    part.expected = part.traced_time * working;
    part.variance = square(constants.exact_error * part.expected + constants.exact_least) +
                    square(constants.exact_idle_error * part.traced_idle) +
                    square(constants.exact_scale_error * std::log(working) * part.expected);
    part.lasting = 0;
  }
}

// In one window a share may differ from the usual one, and the usual one is not known exactly.
void by_samples(Window& window, const Constants& constants) {
  const std::vector<Company::Share> shares = window.company->shares();
  for (size_t i = 0; i < window.parts.size(); ++i) {
    Window::Part& part = window.parts[i];
    part.usual_share = shares[i].mean;
    part.expected = shares[i].mean * window.busy;
    const double usual = shares[i].variance * square(window.busy);
    part.variance = square(constants.share_deviation * part.expected + constants.share_least) + usual;
    part.lasting = usual / part.variance;
  }
}

// Clients of MPS run side by side as long as there are SMs for all of them.
void by_presence(Window& window, const Posterior& posterior, const Constants& constants) {
  double wanted = 0;
  for (const Window::Part& part : window.parts) wanted += posterior.mean(part.signature)[1 + Activity::kSm];
  for (Window::Part& part : window.parts) {
    part.expected = window.busy * std::min(1.0, 1 / std::max(1e-9, wanted));
    part.variance = square(constants.mps_deviation * window.busy);
    part.lasting = 0;
  }
}

}  // namespace

bool shares_moved(const Window& window) {
  constexpr double kMaterial = 0.01;  // of the time
  const std::vector<Company::Share> shares = window.company->shares();
  for (size_t i = 0; i < shares.size(); ++i) {
    if (std::abs(shares[i].mean - window.parts[i].usual_share) > kMaterial) return true;
  }
  return false;
}

std::vector<double> facts_of(const Window& window) {
  std::vector<double> facts;
  facts.reserve(window.parts.size());
  for (const Window::Part& part : window.parts) facts.push_back(part.facts);
  return facts;
}

void expect_times(Window& window, const Posterior& posterior, const Constants& constants) {
  const double busy_variance = square(constants.reading_error) + square(constants.activity_error * window.busy);
  window.sum_variance = 0;
  if (!window.shared()) {
    window.parts.front().expected = window.busy;
    window.parts.front().variance = busy_variance;
    return;
  }
  if (window.company->mps) return by_presence(window, posterior, constants);
  if (window.traced) {
    by_trace(window, constants);
  } else {
    by_samples(window, constants);
  }
  // All times add up to the time in which any kernel ran.
  double sum = 0;
  window.sum_variance = busy_variance;
  for (const Window::Part& part : window.parts) {
    sum += part.expected;
    window.sum_variance += part.variance;
  }
  const double missing = window.busy - sum;
  for (Window::Part& part : window.parts)
    part.expected = std::max(0.0, part.expected + part.variance / window.sum_variance * missing);
}

FeatureMatrix spread_by_times(const Window& window, const std::vector<Features>& signatures, TimeErrors which) {
  FeatureMatrix spread = FeatureMatrix::Zero();
  Features all = Features::Zero();
  for (size_t i = 0; i < window.parts.size(); ++i) {
    const Window::Part& part = window.parts[i];
    double of_it = 1;
    if (which == TimeErrors::kLasting) of_it = part.lasting;
    if (which == TimeErrors::kPassing) of_it = 1 - part.lasting;
    const Features weighted = of_it * part.variance * signatures[i];
    spread.noalias() += weighted * signatures[i].transpose();
    all += std::sqrt(of_it) * part.variance * signatures[i];
  }
  if (window.sum_variance > 0) spread -= all * all.transpose() / window.sum_variance;
  return spread;
}

}  // namespace gpuledger::attribute
