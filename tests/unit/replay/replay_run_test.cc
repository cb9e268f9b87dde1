// SPDX-License-Identifier: Apache-2.0
#include "app/commands/replay.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "trace_text.h"

namespace gpuledger::app {
namespace {

using Json = nlohmann::json;
using replay::kDeviceLine;
using replay::recorded;
using replay::trace_of;

Json result_of(const replay::Trace& trace, Attribution attribution = Attribution::kAdaptive) {
  BookingRules rules;
  rules.attribution = attribution;
  const auto ledger = run_replay(trace, rules);
  if (!ledger.ok()) {
    ADD_FAILURE() << ledger.error().message;
    return {};
  }
  return Json::parse(write_replay(*ledger));
}

// How much of the dynamic joules went to the wrong process, in percent: half the sum of what each got too much or too
// little, the truth scaled to what was distributed.
double misattributed(const Json& result, const Json& truth) {
  std::map<int, double> given, right;
  double total = 0, true_total = 0;
  for (const Json& process : result.at("processes")) {
    given[process.at("pid").get<int>()] += process.at("dynamic_joules").get<double>();
    total += process.at("dynamic_joules").get<double>();
  }
  for (const Json& process : truth.at("processes")) {
    if (process.at("joules").empty()) continue;
    const double joules = process.at("joules").back().at(1).get<double>();
    right[process.at("pid").get<int>()] += joules;
    true_total += joules;
  }
  std::set<int> pids;
  for (const auto& [pid, joules] : given) pids.insert(pid);
  for (const auto& [pid, joules] : right) pids.insert(pid);
  double wrong = 0;
  for (const int pid : pids) wrong += std::abs(given[pid] - right[pid] * total / true_total);
  return 100 * wrong / 2 / total;
}

// The text's decimals as microjoules: a double would hide a lost one.
int64_t microjoules(const std::string& text, const std::string& key) {
  int64_t sum = 0;
  for (size_t at = text.find("\"" + key + "\":"); at != std::string::npos; at = text.find("\"" + key + "\":", at + 1)) {
    sum += std::llround(std::stold(text.substr(at + key.size() + 3, 40)) * 1'000'000);
  }
  return sum;
}

TEST(Replay, EveryRecordingBalancesToTheMicrojoule) {
  const auto names = replay::recordings();
  ASSERT_GE(names.size(), 14u);
  for (const std::string& name : names) {
    const auto trace = replay::read_trace(recorded(name));
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    const uint64_t drawn = trace->counters.back().millijoules - trace->counters.front().millijoules;
    for (const Attribution attribution :
         {Attribution::kAdaptive, Attribution::kUtilization, Attribution::kMeasuredOnly}) {
      for (const StaticPower static_power : {StaticPower::kProportional, StaticPower::kEqual, StaticPower::kSeparate}) {
        BookingRules rules;
        rules.attribution = attribution;
        rules.static_power = static_power;
        const auto ledger = run_replay(*trace, rules);
        ASSERT_TRUE(ledger.ok()) << name << ": " << ledger.error().message;
        const std::string text = write_replay(*ledger);
        EXPECT_EQ(microjoules(text, "measured_joules"), static_cast<int64_t>(drawn) * 1000) << name;
        EXPECT_EQ(microjoules(text, "measured_joules"),
                  microjoules(text, "idle_joules") + microjoules(text, "unattributed_joules") +
                      microjoules(text, "static_joules") + microjoules(text, "dynamic_joules"))
            << name;
        EXPECT_EQ(microjoules(text, "static_joules") + microjoules(text, "dynamic_joules"),
                  microjoules(text, "alone_joules") + microjoules(text, "shared_joules"))
            << name;
      }
    }
  }
}

// What the plain formula is known to score: if this moves, the replay no longer says what the GPU said.
TEST(Replay, ThePlainFormulaScoresWhatItIsKnownToScore) {
  const std::pair<const char*, double> known[] = {
      {"two_staggered", 10.3}, {"spin_vs_fp32", 60.8}, {"three_mixed", 10.0}, {"churn", 20.3},  {"short_jobs", 11.8},
      {"holders", 0.4},        {"power_capped", 10.7}, {"never_alone", 65.7}, {"solo_gemm", 0},
  };
  for (const auto& [name, percent] : known) {
    const auto trace = replay::read_trace(recorded(name));
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    std::ifstream truth(std::string(GPU_LEDGER_SOURCE_DIR "/tests/data/h200/") + name + ".truth.json");
    const double score = misattributed(result_of(*trace, Attribution::kUtilization), Json::parse(truth));
    EXPECT_NEAR(score, percent, 3) << name;
  }
}

TEST(Replay, FormIsWhatScorersRead) {
  const replay::Trace trace = trace_of(kDeviceLine + replay::steady_power(4) +
                                       "{\"k\":\"procs\",\"t\":0,\"p\":[]}\n"
                                       "{\"k\":\"procs\",\"t\":1.8,\"p\":[[7,10]]}\n" +
                                       replay::ticket_line(2.5, 7, 100));
  const Json result = result_of(trace, Attribution::kUtilization);
  EXPECT_EQ(result.at("device").at("measured_joules"), 400);
  ASSERT_EQ(result.at("processes").size(), 1u);
  const Json& process = result.at("processes").at(0);
  EXPECT_EQ(process.at("pid"), 7);
  for (const char* key :
       {"static_joules", "dynamic_joules", "standard_error_joules", "alone_joules", "shared_joules", "gpu_seconds"}) {
    EXPECT_TRUE(process.at(key).is_number()) << key;
  }
  EXPECT_EQ(process.at("shared_joules"), 0);
  EXPECT_DOUBLE_EQ(process.at("gpu_seconds").get<double>(), 0.2);
}

// Both from before it was listed and after: one entry.
TEST(Replay, APidIsOneEntry) {
  const replay::Trace trace = trace_of(kDeviceLine + replay::steady_power(5) +
                                       "{\"k\":\"procs\",\"t\":0.1,\"p\":[[7,10]]}\n"
                                       "{\"k\":\"procs\",\"t\":1.4,\"p\":[]}\n" +
                                       replay::ticket_line(0.5, 7, 100) + replay::ticket_line(3.5, 7, 100));
  const Json result = result_of(trace, Attribution::kUtilization);
  ASSERT_EQ(result.at("processes").size(), 1u);
  EXPECT_GT(result.at("processes").at(0).at("alone_joules").get<double>(), 200);
}

}  // namespace
}  // namespace gpuledger::app
