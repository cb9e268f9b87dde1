// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/bill/allocation_question.h"
#include "http/fair_queue.h"
#include "http/reply.h"
#include "net/interrupt.h"

namespace gpuledger::app {

// A question to the allocation API that somebody waits for.
struct OpenQuestion {
  using Done = std::function<void(http::Reply)>;

  AllocationQuestion question;
  std::string key;
  std::string peer;  // in whose turn it is computed
  bool computing = false;
  std::map<uint64_t, Done> waiting{};
  std::shared_ptr<net::Interrupt> given_up = std::make_shared<net::Interrupt>();  // raised: nobody waits any more
};
using OpenQuestionPtr = std::shared_ptr<OpenQuestion>;

// All open questions, each of them once, whoever asks it. Peers take turns, and no peer takes every worker. The caller
// holds the lock.
class OpenQuestions {
 public:
  using Done = OpenQuestion::Done;
  struct Limits {
    size_t waiting;           // questions
    size_t waiting_for_one;   // who asks the same one
    size_t at_once_per_peer;  // computed
  };
  struct Asked {
    OpenQuestionPtr question;       // null: refused
    uint64_t asker = 0;             // for forget()
    const char* refusal = nullptr;  // why
    std::vector<Done> displaced{};  // whose question had to make room
  };

  explicit OpenQuestions(const Limits& limits) : limits_(limits), lines_(limits.waiting, limits.waiting) {}

  Asked ask(AllocationQuestion question, const std::string& peer, Done done);
  // This asker does not wait any more. A question for nobody is dropped.
  void forget(const OpenQuestionPtr& question, uint64_t asker);

  // The next to compute; null: none for now.
  OpenQuestionPtr take();
  // It was computed: who waits for the answer.
  std::vector<Done> finish(const OpenQuestionPtr& question);

  // Drops all of them.
  void clear();

 private:
  size_t computing(const std::string& peer) const;
  void close(const OpenQuestionPtr& question);

  const Limits limits_;
  std::map<std::string, OpenQuestionPtr> open_;  // by key; not those that are computed for nobody
  http::FairQueue<OpenQuestionPtr> lines_;       // those that are not computed yet
  std::map<std::string, size_t> computing_;      // by peer
  uint64_t last_asker_ = 0;
};

}  // namespace gpuledger::app
