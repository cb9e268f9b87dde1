// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "attribute/estimate/companies.h"
#include "attribute/estimate/posterior.h"

namespace gpuledger::attribute {

// One window of the history, kept so that it can be divided again.
struct Window {
  struct Part {
    uint64_t account = 0;
    uint64_t owner = 0;
    ProcKey process;
    SignatureId signature = 0;
    double facts = 0;        // the driver's samples that name it, see companies.h
    double traced_time = 0;  // share of the window, in cycles of the reference clock
    double traced_idle = 0;
    double usual_share = 0;  // that `expected` stands on
    // By the time evidence alone. Of the variance, the part `lasting` is of an error that lasts for many windows.
    double expected = 0;
    double variance = 0;
    double lasting = 0;
    double time = 0;  // of an MPS client, by the fit
    double joules = 0;
    double error = 0;  // of the joules, one standard error
  };
  struct OwnerError {
    uint64_t owner = 0;
    double error = 0;
  };

  bool shared() const { return parts.size() > 1; }
  // Covariance of the expected times of a and b: their sum is known, so if one is longer the others are shorter.
  double covariance(size_t a, size_t b) const {
    const double all = sum_variance > 0 ? parts[a].variance * parts[b].variance / sum_variance : 0;
    return (a == b ? parts[a].variance : 0) - all;
  }

  std::shared_ptr<Company> company;
  double begin = 0;
  double end = 0;
  double joules = 0;
  double busy = 1;  // in cycles of the reference clock
  bool traced = false;
  bool blind = false;     // no readings of the monitors: nothing is learned from it
  uint64_t revision = 0;  // of its signatures when it was divided
  Features shown = Features::Zero();
  Features variance = Features::Zero();   // of `shown`; very large if a value is unknown
  Features deviation = Features::Zero();  // usual difference between the readings and the sum of the signatures
  double sum_variance = 0;  // of the sum of all expected times and of the busy time; 0: the sum is not known
  std::vector<Part> parts;
  std::vector<OwnerError> owner_errors;

  double seconds() const { return end - begin; }
};

// The company's usual shares are others than those that the window was divided by.
bool shares_moved(const Window& window);
// Of each part: the independent samples of this window alone.
std::vector<double> facts_of(const Window& window);
// Fills `expected` and `variance` of the parts, from the trace, the driver's samples, or presence.
void expect_times(Window& window, const Posterior& posterior, const Constants& constants);
// The covariance of the readings because times are not known exactly. lasting: the part of it that lasts, else the
// rest.
enum class TimeErrors { kAll, kLasting, kPassing };
FeatureMatrix spread_by_times(const Window& window, const std::vector<Features>& signatures, TimeErrors which);

}  // namespace gpuledger::attribute
