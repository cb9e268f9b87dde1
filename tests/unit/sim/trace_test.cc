// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim_driver.h"

namespace gpuledger::sim_test {
namespace {

using namespace nvml;
using Json = nlohmann::json;

std::string trace_path(const std::string& name) {
  return GPU_LEDGER_SOURCE_DIR "/tests/data/h200/" + name + ".jsonl.gz";
}

std::vector<Json> read_lines(const std::string& name) {
  gzFile file = gzopen(trace_path(name).c_str(), "rb");
  std::string text;
  char buffer[65536];
  for (int got; (got = gzread(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(got));
  gzclose(file);
  std::istringstream in(text);
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

class TraceTest : public SimTest {
 protected:
  void open_trace(const std::string& name) { ASSERT_EQ(try_open_file(trace_path(name)), kSuccess) << nv.error(); }
};

TEST_F(TraceTest, SaysEveryCounterReadingAgain) {
  open_trace("two_staggered");
  size_t checked = 0;
  for (const Json& line : read_lines("two_staggered")) {
    if (line["k"] != "energy") continue;
    at(line["t"].get<double>() + 0.001);
    ASSERT_EQ(counter(gpu()), line["mj"].get<unsigned long long>()) << line.dump();
    ASSERT_EQ(power(gpu()), line["power_mw"].get<unsigned>());
    ++checked;
  }
  EXPECT_GT(checked, 500u);
}

TEST_F(TraceTest, IsTheRecordedGpu) {
  open_trace("solo_gemm");
  char text[96];
  ASSERT_EQ(nv.nvmlDeviceGetName(gpu(), text, sizeof text), kSuccess);
  EXPECT_STREQ(text, "NVIDIA H200");
  ASSERT_EQ(nv.nvmlSystemGetDriverVersion(text, sizeof text), kSuccess);
  EXPECT_STREQ(text, "580.159.04");
  Memory memory{};
  ASSERT_EQ(nv.nvmlDeviceGetMemoryInfo(gpu(), &memory), kSuccess);
  EXPECT_EQ(memory.total, 150754820096u);
}

TEST_F(TraceTest, FeedsTheRingWithTheRecordedTickets) {
  open_trace("three_mixed");
  size_t checked = 0;
  for (const Json& line : read_lines("three_mixed")) {
    if (line["k"] != "util") continue;
    const double ts = line["ts"].get<double>();
    at(ts + 0.05);
    bool found = false;
    for (const auto& use : utilization(gpu(), wall(ts - 0.05))) {
      found |= use.pid == line["pid"].get<unsigned>() && use.smUtil == line["sm"].get<unsigned>();
    }
    ASSERT_TRUE(found) << line.dump();
    ++checked;
  }
  EXPECT_GT(checked, 200u);
}

TEST_F(TraceTest, ListsComputeProcessesAndMpsClients) {
  open_trace("mps_mixed");
  at(7.5);
  EXPECT_EQ(compute(gpu()).size(), 2u);
  ProcessInfo clients[4];
  unsigned count = 4;
  ASSERT_EQ(nv.nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu(), &count, clients), kSuccess);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(clients[0].pid, 1140u);
  EXPECT_EQ(clients[0].usedGpuMemory, 612368384u);
  const auto uses = utilization(gpu(), 0);
  ASSERT_FALSE(uses.empty());
  for (const auto& use : uses) EXPECT_EQ(use.pid, 1142u);
}

TEST_F(TraceTest, PowerSamplesAndGpmAreTheRecordedOnes) {
  open_trace("solo_gemm");
  GpmSample from = nullptr, to = nullptr;
  ASSERT_EQ(nv.nvmlGpmSampleAlloc(&from), kSuccess);
  ASSERT_EQ(nv.nvmlGpmSampleAlloc(&to), kSuccess);
  at(5);
  ASSERT_EQ(nv.nvmlGpmSampleGet(gpu(), from), kSuccess);
  at(7);
  ASSERT_EQ(nv.nvmlGpmSampleGet(gpu(), to), kSuccess);
  double sum = 0;
  int lines = 0;
  for (const Json& line : read_lines("solo_gemm")) {
    const double t = line["t"].get<double>();
    if (line["k"] != "gpm" || t <= 5 || t > 7) continue;
    sum += line["tensor"].get<double>();
    ++lines;
  }
  GpmMetricsGet request{};
  request.version = 1;
  request.numMetrics = 1;
  request.sample1 = from;
  request.sample2 = to;
  request.metrics[0].metricId = 5;
  ASSERT_EQ(nv.nvmlGpmMetricsGet(&request), kSuccess);
  EXPECT_GT(sum / lines, 10);
  EXPECT_NEAR(request.metrics[0].value, sum / lines, 0.5);
  const auto ring = samples(gpu(), 0);
  EXPECT_EQ(ring.size(), 119u);
}

TEST_F(TraceTest, HoldsTheLastStateAtTheEnd) {
  open_trace("solo_spin");
  const Json last = [] {
    Json found;
    for (const Json& line : read_lines("solo_spin")) {
      if (line["k"] == "energy") found = line;
    }
    return found;
  }();
  at(1000);
  EXPECT_EQ(counter(gpu()), last["mj"].get<unsigned long long>());
  Return result = kSuccess;
  utilization(gpu(), 0, &result);
  EXPECT_EQ(result, kNotFound);
}

TEST_F(TraceTest, LoopsWithTheCounterGoingOn) {
  open("gpus: [{trace: " + trace_path("solo_spin") + ", loop: true}]\n");
  double length = 0;
  for (const Json& line : read_lines("solo_spin")) length = std::max(length, line["t"].get<double>());
  unsigned long long before = 0;
  size_t with_process = 0;
  for (double t = 0; t < 3 * length; t += 0.5) {
    at(t);
    ASSERT_GE(counter(gpu()), before) << t;
    before = counter(gpu());
    with_process += t > 2 * length && !compute(gpu()).empty();
  }
  EXPECT_GT(with_process, 5u);
}

class BrokenTraceTest : public SimTest {
 protected:
  std::string refused(const std::string& text) {
    const std::string path = folder_ + "/broken.jsonl";
    std::ofstream(path) << text;
    EXPECT_EQ(try_open_file(path), kUnknown);
    std::string error = nv.error();
    const size_t at = error.find("broken.jsonl");
    return at == std::string::npos ? error : error.substr(at);
  }
};

constexpr char kDeviceLine[] =
    R"({"k":"device","t":0.0,"name":"NVIDIA H200","uuid":"GPU-0","memory_total":1,"power_limit_mw":2,"driver":"1"})"
    "\n";

TEST_F(BrokenTraceTest, OneLineSaysWhatIsWrong) {
  EXPECT_EQ(refused(""), "broken.jsonl: no line of k \"energy\" in this trace");
  EXPECT_EQ(refused("{\"k\":\"energy\",\"t\":0,\"mj\":1,\"power_mw\":2}\n"),
            "broken.jsonl:1: a trace begins with a line of k \"device\"");
  const std::string cut = refused(std::string(kDeviceLine) + "{\"k\":\"energy\",\"t\":");
  EXPECT_EQ(cut.rfind("broken.jsonl:2: not a line of a trace", 0), 0u) << cut;
  const std::string without = refused(std::string(kDeviceLine) + "{\"k\":\"energy\",\"t\":1}\n");
  EXPECT_NE(without.find("'mj' not found"), std::string::npos) << without;
  EXPECT_EQ(without.find('\n'), std::string::npos);
}

TEST_F(BrokenTraceTest, ACutGzipFileIsRefused) {
  std::ifstream whole(trace_path("solo_gemm"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  const std::string path = folder_ + "/cut.jsonl.gz";
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_EQ(try_open_file(path), kUnknown);
  EXPECT_NE(std::string(nv.error()).find("cut.jsonl.gz"), std::string::npos) << nv.error();
}

}  // namespace
}  // namespace gpuledger::sim_test
