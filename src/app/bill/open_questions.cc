// SPDX-License-Identifier: Apache-2.0
#include "app/bill/open_questions.h"

#include <utility>

namespace gpuledger::app {
namespace {

std::vector<OpenQuestion::Done> all_waiting(OpenQuestion& question) {
  std::vector<OpenQuestion::Done> all;
  for (auto& [asker, done] : std::exchange(question.waiting, {})) all.push_back(std::move(done));
  return all;
}

}  // namespace

OpenQuestions::Asked OpenQuestions::ask(AllocationQuestion question, const std::string& peer, Done done) {
  Asked asked;
  const std::string key = question.key();
  if (const auto found = open_.find(key); found != open_.end()) {
    OpenQuestion& known = *found->second;
    if (known.waiting.size() >= limits_.waiting_for_one) {
      asked.refusal = "too many ask the same question at once";
      return asked;
    }
    // It waits in the line of the peer that has fewer questions before it, those being computed counted.
    if (!known.computing && lines_.waiting(peer) + computing(peer) <
                                lines_.waiting_before(known.peer, found->second) + computing(known.peer)) {
      lines_.remove(known.peer, found->second);
      known.peer = peer;
      lines_.push(peer, found->second);
    }
    asked.question = found->second;
  } else {
    if (const auto displaced = lines_.make_room(peer)) {
      asked.displaced = all_waiting(**displaced);
      close(*displaced);
    }
    auto fresh = std::make_shared<OpenQuestion>(OpenQuestion{std::move(question), key, peer});
    if (!lines_.push(peer, fresh)) {
      asked.refusal = "too many questions at once";
      return asked;
    }
    open_.emplace(key, fresh);
    asked.question = std::move(fresh);
  }
  asked.asker = ++last_asker_;
  asked.question->waiting.emplace(asked.asker, std::move(done));
  return asked;
}

void OpenQuestions::forget(const OpenQuestionPtr& question, uint64_t asker) {
  if (question->waiting.erase(asker) > 0 && question->waiting.empty()) close(question);
}

OpenQuestionPtr OpenQuestions::take() {
  const auto next = lines_.pop([&](const std::string& peer) { return computing(peer) < limits_.at_once_per_peer; });
  if (!next) return nullptr;
  (*next)->computing = true;
  ++computing_[(*next)->peer];
  return *next;
}

std::vector<OpenQuestions::Done> OpenQuestions::finish(const OpenQuestionPtr& question) {
  if (const auto found = computing_.find(question->peer); found != computing_.end() && --found->second == 0)
    computing_.erase(found);
  std::vector<Done> waiting = all_waiting(*question);
  close(question);
  return waiting;
}

void OpenQuestions::clear() {
  while (!open_.empty()) close(open_.begin()->second);
}

size_t OpenQuestions::computing(const std::string& peer) const {
  const auto found = computing_.find(peer);
  return found == computing_.end() ? 0 : found->second;
}

void OpenQuestions::close(const OpenQuestionPtr& question) {
  question->given_up->raise();
  lines_.remove(question->peer, question);
  const auto found = open_.find(question->key);
  // Another may have asked it again since this one was given up.
  if (found != open_.end() && found->second == question) open_.erase(found);
}

}  // namespace gpuledger::app
