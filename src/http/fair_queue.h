// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
    return pop([](const std::string&) { return true; });
  }
  // The next job of a peer that may have one now.
  template <typename May>
  std::optional<Job> pop(const May& may) {
    const auto turn = std::find_if(turns_.begin(), turns_.end(), may);
    if (turn == turns_.end()) return std::nullopt;
    const std::string peer = std::move(*turn);
    turns_.erase(turn);
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

  // If all places are taken, the newest job of the peer with the most goes, unless this peer would then have more.
  std::optional<Job> make_room(const std::string& peer) {
    if (size_ < most_ || lines_.empty()) return std::nullopt;
    const auto longest = std::max_element(
        lines_.begin(), lines_.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (longest->second.size() < waiting(peer) + 2) return std::nullopt;
    std::optional<Job> job = std::move(longest->second.back());
    longest->second.pop_back();
    --size_;
    return job;
  }

  void remove(const std::string& peer, const Job& job) {
    const auto line = lines_.find(peer);
    if (line == lines_.end()) return;
    const auto found = std::find(line->second.begin(), line->second.end(), job);
    if (found == line->second.end()) return;
    line->second.erase(found);
    --size_;
    if (!line->second.empty()) return;
    lines_.erase(line);
    turns_.erase(std::find(turns_.begin(), turns_.end(), peer));
  }

  // How many jobs of this peer wait; and how many of them before this one.
  size_t waiting(const std::string& peer) const {
    const auto line = lines_.find(peer);
    return line == lines_.end() ? 0 : line->second.size();
  }
  size_t waiting_before(const std::string& peer, const Job& job) const {
    const auto line = lines_.find(peer);
    if (line == lines_.end()) return 0;
    return static_cast<size_t>(std::find(line->second.begin(), line->second.end(), job) - line->second.begin());
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
