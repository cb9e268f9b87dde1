// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/mutex.h"

namespace gpuledger::http {

// Brings work from any thread to the io thread until it is closed. A thread that computes an answer may outlive the
// server.
class Postbox {
 public:
  explicit Postbox(boost::asio::io_context& io) : io_(&io) {}

  template <typename Work>
  void post(Work work) {
    MutexLock lock(mutex_);
    if (io_ != nullptr) boost::asio::post(*io_, std::move(work));
  }
  void close() {
    MutexLock lock(mutex_);
    io_ = nullptr;
  }

 private:
  Mutex mutex_;
  boost::asio::io_context* io_ GL_GUARDED_BY(mutex_);
};

}  // namespace gpuledger::http
