// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/companies.h"

#include <cmath>

#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

std::vector<Company::Share> Company::shares() const {
  constexpr double kLeastFacts = 0.02;  // before the first sample every process may work
  double sum = 0;
  for (const double each : facts) sum += each + kLeastFacts;
  std::vector<Share> shares;
  shares.reserve(facts.size());
  for (const double each : facts) {
    const double mean = (each + kLeastFacts) / sum;
    shares.push_back({mean, mean * (1 - mean) / (sum + 1)});
  }
  return shares;
}

std::shared_ptr<Company> Companies::of(const WindowInput& input) {
  constexpr size_t kMostBeforeCleaning = 1200;
  std::vector<uint64_t> key;
  key.reserve(input.parts.size() + 1);
  for (const auto& part : input.parts) key.push_back(part.member.account);
  if (input.mps) key.push_back(0);
  std::weak_ptr<Company>& place = companies_[key];
  std::shared_ptr<Company> company = place.lock();
  if (company) return company;
  company = std::make_shared<Company>();
  company->mps = input.mps;
  company->facts.resize(input.parts.size());
  company->accounts = std::move(key);
  place = company;
  if (companies_.size() > kMostBeforeCleaning)
    std::erase_if(companies_, [](const auto& entry) { return entry.second.expired(); });
  return company;
}

void Companies::add_samples(const Window& window) const {
  Company& company = *window.company;
  const double kept = std::exp(-window.seconds() / constants_.share_memory);
  company.at = window.end;
  for (size_t i = 0; i < company.facts.size(); ++i) company.facts[i] = company.facts[i] * kept + window.parts[i].facts;
}

}  // namespace gpuledger::attribute
