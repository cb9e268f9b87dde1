// SPDX-License-Identifier: Apache-2.0
// usage: virtual_scrapes LIBRARY SCENARIO SECONDS STEP EVERY
//
// A simulated node in virtual time, sampled every STEP seconds. Prints what a scrape every EVERY seconds would have
// got: a line "# scrape SECOND", then the metrics.
#include <cstdio>
#include <cstdlib>

#include "support/virtual_node.h"

int main(int argc, char** argv) {
  using namespace gpuledger;
  if (argc != 6) return 2;
  const int64_t seconds = std::atoll(argv[3]), step = std::atoll(argv[4]), every = std::atoll(argv[5]);
  auto node = VirtualNode::start(argv[1], argv[2], {"team"});
  if (!node.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[2], node.error().message.c_str());
    return 1;
  }
  expose::ExposeOptions options;
  options.version = "test";
  options.own_process_metrics = false;
  options.collectors = {"device", "pod"};
  for (int64_t second = 0; second <= seconds; second += step) {
    const auto snapshot = (*node)->run_cycle(second);
    if (second % every != 0) continue;
    std::printf("# scrape %lld\n%s", static_cast<long long>(second),
                expose::write_text(*snapshot->cycle, options).c_str());
  }
  return 0;
}
