// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "expose/catalog.h"
#include "exposition_parser.h"
#include "node_example.h"

namespace gpuledger::expose {
namespace {

Exposition parsed(const std::string& text, Format format) {
  auto result = parse_exposition(text, format);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.value_or({});
}

std::set<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(Books, BalanceInThePrintedTextForEveryGpu) {
  const Exposition out = expose(node_example());
  for (const char* gpu : {"0", "1", "2", "3"}) {
    const Labels of{{"gpu", gpu}};
    const int64_t owners = out.micro_sum("gpu_ledger_pod_energy_joules_total", of) +
                           out.micro_sum("gpu_ledger_slurm_job_energy_joules_total", of) +
                           out.micro_sum("gpu_ledger_container_energy_joules_total", of) +
                           out.micro_sum("gpu_ledger_host_energy_joules_total", of) +
                           out.micro_sum("gpu_ledger_unknown_owner_energy_joules_total", of) +
                           out.micro_sum("gpu_ledger_closed_energy_joules", of);
    EXPECT_EQ(out.micro_sum("gpu_ledger_device_energy_joules_total", of),
              owners + out.micro_sum("gpu_ledger_device_unattributed_joules_total", of))
        << gpu;
    EXPECT_GE(owners, out.micro_sum("my_gpu_process_energy_joules_total", of)) << gpu;
  }
  EXPECT_GE(out.micro_sum("gpu_ledger_pod_energy_joules_total", {{"pod", "train-0"}}),
            out.micro_sum("my_gpu_process_energy_joules_total", {{"pod", "train-0"}}));
}

// With a sample of every family.
Cycle whole_example() {
  Cycle cycle = node_example();
  process_of(cycle, 100).decoder = Ratio{0.5};
  ProcessAccount job = process_of(cycle, 300);
  job.identity.key.pid = 301;
  job.identity.owner = {};
  job.identity.owner.kind = OwnerKind::kSlurmJob;
  job.identity.owner.job = "4711";
  job.identity.owner.step = "0";
  cycle.ledger.processes.push_back(job);
  for (OwnerAccount& owner : cycle.ledger.owners) owner.memory_peak = Bytes{1};
  auto description = std::make_shared<DeviceDescription>(*cycle.ledger.devices[1].description);
  description->mig.at(0).memory_used = Bytes{1};
  cycle.ledger.devices[1].description = description;
  Activity& activity = cycle.batch.devices[1].instance_activity[description->mig[0].id.gpu_instance];
  activity.graphics = activity.parts[Activity::kSm] = Ratio{0.5};
  return cycle;
}

ExposeOptions all_collectors() {
  ExposeOptions options = example_options();
  options.collectors.insert("process-native");
  options.collectors.insert("driver-calls");
  return options;
}

TEST(Catalog, NamesTypesAndUnitsFit) {
  std::set<std::string> names;
  for (const Family& family : catalog()) {
    const std::string name = full_name(family, "p");
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.ends_with("_total"), family.type == MetricType::kCounter) << name;
    EXPECT_FALSE(family.help.empty()) << name;
    EXPECT_TRUE(family.help.ends_with('.')) << name;
    if (family.unit.empty()) continue;
    const std::string stem = family.type == MetricType::kCounter ? name.substr(0, name.size() - 6) : name;
    EXPECT_TRUE(stem.ends_with("_" + std::string(family.unit))) << name;
  }
}

TEST(Catalog, EveryFamilyIsPrintedWithTheLabelsItNames) {
  const Exposition out = expose(whole_example(), all_collectors());
  std::map<std::string_view, std::set<std::string>> printed;  // families that name the same labels together
  for (const Family& family : catalog()) {
    const std::string name = full_name(family, "my_gpu_process");
    ASSERT_TRUE(out.families.contains(name)) << name;
    EXPECT_EQ(out.families.at(name).type, type_name(family.type));
    for (const ParsedSample& sample : out.samples) {
      if (sample.family != name) continue;
      for (const auto& [label, value] : sample.labels) {
        if (label == "le") continue;
        if (label.starts_with("label_")) {  // whatever the pods bring
          EXPECT_TRUE(words(family.labels).contains("label_*")) << name;
          printed[family.labels].insert("label_*");
          continue;
        }
        EXPECT_TRUE(words(family.labels).contains(label)) << name << " " << label;
        printed[family.labels].insert(label);
      }
    }
  }
  for (const auto& [named, labels] : printed) EXPECT_EQ(labels, words(named));
}

TEST(Catalog, HelpSaysWhenAValueIsAbsent) {
  const std::regex says_when("[Aa]bsent|Only (on|with) ");
  size_t checked = 0;
  for (const Family& family : catalog()) {
    if (!family.can_be_absent) continue;
    ++checked;
    EXPECT_TRUE(std::regex_search(family.help, says_when)) << family.name << ": " << family.help;
  }
  EXPECT_GT(checked, 60u);
}

TEST(Catalog, TextFollowsItsOrder) {
  const Exposition out = expose(whole_example(), all_collectors());
  std::vector<std::string> printed, listed;
  for (const ParsedSample& sample : out.samples) {
    if (printed.empty() || printed.back() != sample.family) printed.push_back(sample.family);
  }
  for (const Family& family : catalog()) listed.push_back(full_name(family, "my_gpu_process"));
  EXPECT_EQ(printed, listed);
}

TEST(OpenMetrics, HasTheSameSeriesAndValues) {
  const Exposition text = expose(node_example());
  const std::string bytes = write_openmetrics(node_example(), example_options());
  const Exposition open = parsed(bytes, Format::kOpenMetrics);
  ASSERT_EQ(text.samples.size(), open.samples.size());
  for (size_t i = 0; i < text.samples.size(); ++i) {
    EXPECT_EQ(text.samples[i].name, open.samples[i].name);
    EXPECT_EQ(text.samples[i].labels, open.samples[i].labels);
    EXPECT_EQ(text.samples[i].value, open.samples[i].value);
  }
  EXPECT_TRUE(bytes.ends_with("\n# EOF\n"));
  EXPECT_EQ(open.families.at("my_gpu_process_energy_joules").type, "counter");
  EXPECT_EQ(open.families.at("my_gpu_process_energy_joules").unit, "joules");
  EXPECT_EQ(open.families.at("gpu_process_info").type, "gauge");
  EXPECT_EQ(open.families.at("gpu_ledger_sample_duration_seconds").unit, "seconds");
}

TEST(OpenMetrics, EmptyCycleIsValidToo) {
  ExposeOptions options;
  options.collectors.clear();
  EXPECT_EQ(write_openmetrics(Cycle{}, options), "# EOF\n");
  EXPECT_EQ(write_text(Cycle{}, options), "");
  parsed(write_openmetrics(Cycle{}, example_options()), Format::kOpenMetrics);
  EXPECT_EQ(expose(Cycle{}).value("gpu_total_processes"), std::optional<std::string>("0"));
}

TEST(Options, PrefixNamesTheProcessFamiliesOnly) {
  ExposeOptions options = example_options();
  options.process_prefix = "site:gpu";
  const Exposition out = expose(node_example(), options);
  EXPECT_TRUE(out.has("site:gpu_energy_joules_total"));
  EXPECT_FALSE(out.has("my_gpu_process_energy_joules_total"));
  EXPECT_TRUE(out.has("gpu_process_info"));
}

TEST(Options, PrefixThatWouldSpoilTheScrapeIsRefused) {
  EXPECT_TRUE(check_process_prefix("my_gpu_process").ok());
  EXPECT_TRUE(check_process_prefix("gpu_process").ok());
  for (const char* bad : {"", "9gpu", "my-gpu", "gpu process", "process", "gpu_idle_process", "gpu_ledger_pod"}) {
    EXPECT_FALSE(check_process_prefix(bad).ok()) << bad;
  }
  EXPECT_EQ(check_process_prefix("process").error().message,
            "with the prefix \"process\" two metrics would be called process_start_time_seconds");
}

TEST(Options, NodeIsOnEverySeries) {
  ExposeOptions options = example_options();
  options.node = "gpu-node-7";
  const Exposition out = expose(node_example(), options);
  ASSERT_FALSE(out.samples.empty());
  for (const ParsedSample& sample : out.samples) {
    ASSERT_TRUE(sample.labels.contains("node")) << sample.name;
    EXPECT_EQ(sample.labels.at("node"), "gpu-node-7");
  }
}

TEST(Options, OwnPodIsOnIdleSeriesThatHaveNone) {
  ExposeOptions options = example_options();
  options.pod = "exporter-x";
  options.name_space = "monitoring";
  const Exposition out = expose(node_example(), options);
  for (const ParsedSample& sample : out.samples) {
    const bool idle = sample.name.starts_with("gpu_idle_");
    const bool has_own = sample.labels.contains("pod") && sample.labels.at("pod") == "train-0";
    const bool has_exporters = sample.labels.contains("pod") && sample.labels.at("pod") == "exporter-x";
    EXPECT_EQ(has_exporters, idle && !has_own) << sample.name;
    if (!idle) continue;
    EXPECT_EQ(sample.labels.at("namespace"), has_own ? "ml" : "monitoring") << sample.name;
  }
}

TEST(Options, CollectorsAreOnOrOff) {
  const std::set<std::string> all = all_collectors().collectors;
  for (const std::string& off : all) {
    ExposeOptions options = example_options();
    options.collectors = all;
    options.collectors.erase(off);
    const Exposition out = expose(whole_example(), options);
    for (const Family& family : catalog()) {
      EXPECT_EQ(out.families.contains(full_name(family, "my_gpu_process")), family.collector != off) << family.name;
    }
  }
}

TEST(Parser, RefusesWhatTheFormatsForbid) {
  const std::string head = "# HELP a A.\n# TYPE a gauge\n";
  EXPECT_TRUE(parse_exposition(head + "a 1\n", Format::kText).ok());
  for (const std::string& bad :
       {head + "a 1", head + "a 1\na 2\n", head + "b 1\n", head + "a{x=\"1} 1\n", head + "a{x=\"\\q\"} 1\n",
        head + "a NaN\n", head + "a{x=\"\"} 1\n", head + "a 1\n" + head, std::string("a 1\n"), head + "a \x01\n",
        head + "a 1\n# EOF\n", std::string("# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n")}) {
    EXPECT_FALSE(parse_exposition(bad, Format::kText).ok()) << bad;
  }
  EXPECT_FALSE(parse_exposition(head + "a 1\n", Format::kOpenMetrics).ok());
  EXPECT_FALSE(parse_exposition(head + "a 1\n# EOF\na 2\n", Format::kOpenMetrics).ok());
}

}  // namespace
}  // namespace gpuledger::expose
