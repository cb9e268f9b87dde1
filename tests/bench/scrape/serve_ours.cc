// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "../crowded_node.h"
#include "base/clock.h"
#include "expose/expose.h"
#include "http/server.h"
#include "model/snapshot.h"

// Serves a crowded node as the program does: a new snapshot every PERIOD milliseconds, whose bytes are made when the
// first reader asks. Prints the exposition's address, and with "text" as the period only the exposition itself.
//   serve_ours PERIOD|text GPUS PROCESSES
int main(int argc, char** argv) {
  using namespace gpuledger;
  if (argc != 4) return 2;
  attribute::Engine engine((BookingRules()));
  bench::CrowdedNode node = bench::CrowdedNode::settled(static_cast<uint32_t>(std::atoi(argv[2])),
                                                        static_cast<uint32_t>(std::atoi(argv[3])), engine);
  const auto cycle = std::make_shared<const Cycle>(node.cycle(engine));
  if (std::string_view(argv[1]) == "text") {
    const std::string text = expose::write_text(*cycle, expose::ExposeOptions());
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
  }
  SnapshotCell cell;
  const auto publish = [&] {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->cycle = cycle;
    snapshot->text = LazyText([cycle] { return expose::write_text(*cycle, expose::ExposeOptions()); });
    cell.store(std::move(snapshot));
  };
  publish();
  const SystemClock clock;
  http::ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0"};
  const auto server = http::Server::start(std::move(options), cell, clock);
  if (!server.ok()) return 1;
  std::printf("%s\n", (*server)->addresses().front().c_str());
  std::fflush(stdout);
  const std::chrono::milliseconds period(std::atoi(argv[1]));
  for (const pid_t parent = ::getppid(); ::getppid() == parent;) {
    std::this_thread::sleep_for(period);
    publish();
  }
}
