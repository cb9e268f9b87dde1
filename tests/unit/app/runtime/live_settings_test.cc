// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "app/config/config_settings.h"
#include "app/runtime/pipeline.h"
#include "app/runtime/wiring.h"
#include "support/batch_builder.h"
#include "support/laws.h"
#include "support/manual_clock.h"

// The law of live settings: one that the table marks as taking effect at SIGHUP shows in the books after it.
namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using ::gpuledger::testing::BatchBuilder;
using ::gpuledger::testing::pod_owner;

struct LiveNode {
  ManualClock clock{0s, 1'700'000'000s};
  IdentityMap identities;
};

// Two processes share a GPU all the time, a third was there for the first three seconds.
class NodeSource final : public GpuSource {
 public:
  explicit NodeSource(LiveNode& node) : node_(node) {}
  SampleBatch sample(bool) override {
    const double second = std::chrono::duration<double>(node_.clock.now().steady).count();
    BatchBuilder batch(second);
    batch.gpu(0, static_cast<int64_t>(second * 300'000)).process(1, 0.5, 0, pod_owner("a"));
    batch.process(2, 0.5, 0, pod_owner("b"));
    if (second < 3) batch.process(3, 0.5, 0, pod_owner("gone"));
    node_.identities = batch.identities();
    return batch.batch();
  }
  void change_interval(Nanoseconds) override {}
  void release() override {}
  void resume() override {}

 private:
  LiveNode& node_;
};

class NodeNames final : public IdentitySource {
 public:
  explicit NodeNames(const LiveNode& node) : node_(node) {}
  std::shared_ptr<const IdentityMap> resolve(const SampleBatch&) override {
    return std::make_shared<const IdentityMap>(node_.identities);
  }

 private:
  const LiveNode& node_;
};

const ProcessAccount* find(const Ledger& ledger, Pid pid) {
  for (const ProcessAccount& account : ledger.processes) {
    if (account.identity.key.pid == pid) return &account;
  }
  return nullptr;
}

struct LiveSetting {
  std::string_view name;
  std::string before;
  std::string after;
  std::vector<std::pair<std::string_view, std::string>> others;  // settings without which it does not show
  bool (*shows)(const Ledger&);                                  // only after the change
  friend std::ostream& operator<<(std::ostream& out, const LiveSetting& setting) { return out << setting.name; }
};

class LiveSettings : public ::testing::TestWithParam<LiveSetting> {
 protected:
  static void set(std::string_view name, const std::string& value, Config& config) {
    const Setting* const setting = find_setting(name);
    ASSERT_NE(setting, nullptr) << name;
    const Status applied = setting->member.apply({value}, config);
    ASSERT_TRUE(applied.ok()) << applied.error().message;
  }

  static Ledger run(Config config, const std::optional<Config>& reread) {
    LiveNode node;
    Pipeline pipeline(std::make_unique<NodeSource>(node), std::make_unique<NodeNames>(node), booking_rules(config),
                      PipelineOptions{}, node.clock);
    Ledger ledger;
    const auto cycle = [&](Nanoseconds at) {
      node.clock.set({at, 1'700'000'000s + at});
      ledger = pipeline.run_cycle()->cycle->ledger;
      ::gpuledger::testing::expect_balanced(ledger);
    };
    for (int second = 0; second <= 10; ++second) cycle(std::chrono::seconds(second));
    if (reread) {
      take_live_changes(config, *reread);
      pipeline.change(booking_rules(config), PipelineOptions{});
    }
    for (int second = 11; second <= 20; ++second) cycle(std::chrono::seconds(second));
    cycle(35s);  // more than the driver's samples cover, unless the interval is as long
    return ledger;
  }
};

TEST_P(LiveSettings, AChangeAtSighupShowsInTheBooks) {
  const LiveSetting& setting = GetParam();
  EXPECT_EQ(find_setting(setting.name)->effect, SettingEffect::kLive);
  Config config;
  for (const auto& [name, value] : setting.others) set(name, value, config);
  set(setting.name, setting.before, config);
  Config fresh = config;
  set(setting.name, setting.after, fresh);
  EXPECT_FALSE(setting.shows(run(config, std::nullopt)));
  EXPECT_TRUE(setting.shows(run(config, fresh)));
}

const LiveSetting kLiveSettings[] = {
    {"metric-retention", "5m", "5s", {}, [](const Ledger& ledger) { return find(ledger, 3) == nullptr; }},
    {"owner-retention", "24h", "5s", {{"metric-retention", "1s"}}, [](const Ledger& l) { return !l.closed.empty(); }},
    {"max-exited-processes", "1000", "0", {}, [](const Ledger& l) { return l.folded.processes_over_limit > 0; }},
    {"max-ended-owners",
     "1000",
     "0",
     {{"metric-retention", "1s"}},
     [](const Ledger& ledger) { return ledger.folded.owners_over_limit > 0; }},
    {"gpu-idle-power",
     "50",
     "60",
     {},
     [](const Ledger& ledger) { return ledger.devices.at(0).idle_power == Power::watts(60); }},
    {"idle-interval", "1h", "1s", {}, [](const Ledger& ledger) { return find(ledger, 1)->idle.evaluated; }},
    {"sample-interval",
     "1s",
     "20s",
     {},
     [](const Ledger& ledger) { return find(ledger, 1)->booked.gpu_time.value() > 15s; }},
};

INSTANTIATE_TEST_SUITE_P(Books, LiveSettings, ::testing::ValuesIn(kLiveSettings), [](const auto& test) {
  std::string name(test.param.name);
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace gpuledger::app
