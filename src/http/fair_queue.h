// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace gpuledger::http {

// A queue per peer, served in turns: a peer with many jobs delays only itself. One thread.
template <typename Job>
class FairQueue {
 public:
  FairQueue(size_t most, size_t most_per_peer) : most_(most), most_per_peer_(most_per_peer) {}

  // False: too many wait, in all or of this peer.
  bool push(const std::string& peer, Job job) {
    if (size_ >= most_) return false;
    const auto line = lines_.find(peer);
    if (line == lines_.end()) {
      turns_.push_back(peer);
      lines_[peer].push_back(std::move(job));
    } else {
      if (line->second.size() >= most_per_peer_) return false;
      line->second.push_back(std::move(job));
    }
    ++size_;
    return true;
  }

  std::optional<Job> pop() {
    if (turns_.empty()) return std::nullopt;
    const std::string peer = std::move(turns_.front());
    turns_.pop_front();
    const auto line = lines_.find(peer);
    std::optional<Job> job = std::move(line->second.front());
    line->second.pop_front();
    --size_;
    if (line->second.empty())
      lines_.erase(line);
    else
      turns_.push_back(peer);
    return job;
  }

  bool empty() const { return size_ == 0; }
  void clear() {
    lines_.clear();
    turns_.clear();
    size_ = 0;
  }

 private:
  const size_t most_;
  const size_t most_per_peer_;
  size_t size_ = 0;
  std::map<std::string, std::deque<Job>> lines_;
  std::deque<std::string> turns_;  // every peer with a queue, once
};

}  // namespace gpuledger::http
