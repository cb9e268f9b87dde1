// SPDX-License-Identifier: Apache-2.0
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

// Serves the series of a file with prometheus-cpp. Each line of it: type, name, value, then label names and values,
// with tabs between them.
//   serve_prometheus_cpp FILE PORT
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto registry = std::make_shared<prometheus::Registry>();
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauges;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters;
  std::ifstream file(argv[1]);
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
    std::map<std::string, std::string> labels;
    for (size_t i = 3; i + 1 < words.size(); i += 2) labels[words[i]] = words[i + 1];
    const double value = std::strtod(words.at(2).c_str(), nullptr);
    if (words[0] == "counter") {
      auto*& family = counters[words[1]];
      if (!family) family = &prometheus::BuildCounter().Name(words[1]).Help("A counter.").Register(*registry);
      family->Add(labels).Increment(value);
    } else {
      auto*& family = gauges[words[1]];
      if (!family) family = &prometheus::BuildGauge().Name(words[1]).Help("A gauge.").Register(*registry);
      family->Add(labels).Set(value);
    }
  }
  prometheus::Exposer exposer(std::string("127.0.0.1:") + argv[2]);
  exposer.RegisterCollectable(registry);
  std::printf("127.0.0.1:%s\n", argv[2]);
  std::fflush(stdout);
  for (const pid_t parent = ::getppid(); ::getppid() == parent;) std::this_thread::sleep_for(std::chrono::seconds(1));
}
