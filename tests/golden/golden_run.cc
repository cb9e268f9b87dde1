// SPDX-License-Identifier: Apache-2.0
// usage: golden_run LIBRARY SCENARIO SECONDS text|openmetrics|json|dcgm|dcgm-modern|dcgm-openmetrics
//        EXPECTED_WITHOUT_ENDING
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "support/virtual_node.h"

namespace {

using namespace gpuledger;

// Call times, and so the number of their series, depend on the machine the test runs on.
bool is_volatile(const std::string& line) {
  for (const char* name :
       {"gpu_ledger_driver_call_duration_seconds_", "gpu_ledger_sample_duration_seconds_", "gpu_ledger_series "}) {
    if (line.starts_with(name)) return true;
  }
  return false;
}

std::string without_volatile_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string kept, line;
  while (std::getline(lines, line)) {
    if (!is_volatile(line)) kept += line + "\n";
  }
  return kept;
}

std::string show(const Cycle& cycle, const std::string& format) {
  expose::ExposeOptions options;
  options.version = "test";
  options.own_process_metrics = false;
  options.host_name = "node-7";
  if (format.starts_with("dcgm")) {
    options.collectors = {format == "dcgm-modern" ? "dcgm-modern" : "dcgm"};
    return format == "dcgm-openmetrics" ? expose::write_gpu_openmetrics(cycle, options)
                                        : expose::write_gpu_text(cycle, options);
  }
  if (format == "json") return expose::write_json(cycle, options) + "\n";
  return without_volatile_lines(format == "text" ? expose::write_text(cycle, options)
                                                 : expose::write_openmetrics(cycle, options));
}

Result<std::string> run(const std::string& library, const std::string& scenario, int seconds,
                        const std::string& format) {
  GL_TRY(node, VirtualNode::start(library, scenario, {"app"}));
  std::shared_ptr<const Snapshot> snapshot;
  for (int second = 0; second <= seconds; ++second) snapshot = node->run_cycle(second);
  return show(*snapshot->cycle, format);
}

std::string ending(const std::string& format) {
  if (format == "text") return ".prom";
  if (format == "openmetrics") return ".om";
  if (format == "json") return ".json";
  return "." + format + (format.ends_with("openmetrics") ? ".om" : ".prom");
}

// JSON comes in one line. With a line for every field a difference can be read.
std::string in_lines(const std::string& json) {
  std::string lines;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    lines += json[i];
    if (json[i] == '\\' && quoted && i + 1 < json.size()) {
      lines += json[++i];
    } else if (json[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (json[i] == ',' || json[i] == '{' || json[i] == '[')) {
      lines += '\n';
    }
  }
  return lines;
}

// All of it, as diff writes it.
void show_difference(const std::string& file, const std::string& actual) {
  std::string pattern = (std::filesystem::temp_directory_path() / "gpu-ledger-golden-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  const std::string made = folder + "/made";
  std::ofstream(made) << actual;
  const std::string command = "diff -u '" + file + "' '" + made + "' >&2";
  if (std::system(command.c_str()) == -1) std::cerr << file << " differs\n";
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string format = argv[4];
  const std::string file = std::string(argv[5]) + ending(format);
  const auto outcome = run(argv[1], argv[2], std::atoi(argv[3]), format);
  if (!outcome.ok()) {
    std::cerr << argv[2] << ": " << outcome.error().message << "\n";
    return 1;
  }
  const std::string actual = format == "json" ? in_lines(*outcome) : *outcome;

  if (std::getenv("GPU_LEDGER_UPDATE_GOLDEN")) {
    std::ofstream(file) << actual;
    return 0;
  }
  std::ifstream stream(file);
  if (!stream) {
    std::cerr << "no " << file << "; make it with GPU_LEDGER_UPDATE_GOLDEN=1\n";
    return 1;
  }
  std::stringstream expected;
  expected << stream.rdbuf();
  if (expected.str() == actual) return 0;
  show_difference(file, actual);
  return 1;
}
