// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "app/top/books.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "task/poll_thread.h"

namespace gpuledger::app::top {

// The last books, and those before them.
struct Reading {
  std::shared_ptr<const Books> now;     // never null
  std::shared_ptr<const Books> before;  // null: none that could be compared
  std::string trouble;                  // why `now` is not fresh; empty: it is
  Nanoseconds seen{0};                  // when `now` came; steady
};

// Adds books that came at this steady time. The same books again change nothing. `before` is null if the new books are
// older, of another run of the exporter, or if its clock was set between the two.
void take_books(Books books, Nanoseconds at, Reading& reading);

// Reads books repeatedly on its own thread, so that keys never wait. If a read fails, the last books stay.
class Feed {
 public:
  using Read = std::function<Result<Books>(const std::stop_token&)>;
  Feed(Books first, Read read, Nanoseconds period, const Clock& clock);

  // An error: it has no thread and reads nothing.
  const Status& started() const { return thread_.started(); }

  Reading latest() const;
  // Readable once something is new, until forget_news.
  int news_fd() const { return news_.get(); }
  void forget_news() const;

 private:
  task::PollThread::Next look(const std::stop_token& stop);

  const Read read_;
  const Nanoseconds period_;
  const Clock& clock_;
  const UniqueFd news_;
  const Nanoseconds began_;  // steady
  Nanoseconds since_{0};     // the thread's own: the first failure in a row, wall

  mutable Mutex mutex_;
  Reading reading_ GL_GUARDED_BY(mutex_);
  task::PollThread thread_;  // last: it uses the others
};

// "10:02:33", local time.
std::string clock_text(double seconds_since_1970);

}  // namespace gpuledger::app::top
