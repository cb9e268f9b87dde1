// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace gpuledger {

// Bytes that are made for the first reader, once for all copies. Thread-safe: other readers wait until they are made.
// The source data must not change.
class LazyText {
 public:
  LazyText() : LazyText(std::string()) {}
  explicit LazyText(std::string text) : state_(std::make_shared<State>()) { state_->text = std::move(text); }
  explicit LazyText(std::function<std::string()> make) : state_(std::make_shared<State>()) {
    state_->make = std::move(make);
  }

  const std::string& get() const {
    std::call_once(state_->once, [&] {
      if (state_->make) state_->text = state_->make();
      state_->text.shrink_to_fit();  // slow readers hold it for long
      state_->make = nullptr;        // frees the source data
    });
    return state_->text;
  }

  // For readers that need the bytes longer than their source.
  std::shared_ptr<const std::string> share() const { return {state_, &get()}; }

 private:
  struct State {
    std::once_flag once;
    std::function<std::string()> make;
    std::string text;
  };
  std::shared_ptr<State> state_;
};

}  // namespace gpuledger
