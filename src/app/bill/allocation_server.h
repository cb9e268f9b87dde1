// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/bill/allocation_question.h"
#include "app/bill/statement.h"
#include "base/clock.h"
#include "base/result.h"
#include "http/server.h"
#include "net/interrupt.h"

namespace gpuledger::app {

struct AllocationLimits {
  size_t workers = 3;                                   // bills computed at once
  size_t workers_per_peer = 2;                          // of one client address: another one finds a worker free
  size_t waiting = 32;                                  // different questions; more get 503, who asks most first
  size_t waiting_for_one = 256;                         // who asks the same question; more get 503
  Nanoseconds keep_answers = std::chrono::seconds(60);  // how long an answer is given again
  size_t most_lines = 50'000;                           // of an answer, in all its sets: about 1 kB each
  size_t kept_answers = 64;
  size_t kept_bytes = 32 << 20;
};

// The allocation API over HTTP: GET /allocation, /allocation/summary and their other names. The same question asked
// several times at once is computed once, addresses take turns, and a question whose askers all left is dropped.
class AllocationServer {
 public:
  // Makes the bill of one of the question's spans. Blocks, on a worker thread; it must own all it uses, since it may
  // outlive the server in a call that does not return. A long span is thousands of queries: it ends with Code::kTimeout
  // once the answer is given up, because nobody waits for it any more.
  using MakeStatement = std::function<Result<Statement>(const BillSpan& span, const AllocationQuestion& question,
                                                        const std::shared_ptr<const net::Interrupt>& given_up)>;

  // Sets the answerer of `options`; their addresses, web config, allowed hosts and limits count. The clock must outlive
  // the server.
  static Result<std::unique_ptr<AllocationServer>> start(http::ServerOptions options, MakeStatement make,
                                                         const Clock& clock, AllocationLimits limits = {});
  ~AllocationServer();  // stops
  AllocationServer(const AllocationServer&) = delete;
  AllocationServer& operator=(const AllocationServer&) = delete;

  std::vector<std::string> addresses() const;
  // Reads the web config again.
  Status reload();
  // Returns within a second; a bill that is being computed is given up.
  void stop();

 private:
  class Desk;
  explicit AllocationServer(std::shared_ptr<Desk> desk);

  std::shared_ptr<Desk> desk_;  // first: the server asks it
  SnapshotCell no_snapshots_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace gpuledger::app
