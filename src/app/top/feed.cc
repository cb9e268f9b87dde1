// SPDX-License-Identifier: Apache-2.0
#include "app/top/feed.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

namespace gpuledger::app::top {

void take_books(Books books, Nanoseconds at, Reading& reading) {
  reading.trouble.clear();
  if (reading.now && books.at == reading.now->at && books.cycle == reading.now->cycle) return;
  constexpr double kSlack = 60;  // our reads and the exporter's cycles are at different times
  bool follows = false;
  if (reading.now && books.at > reading.now->at && books.cycle > reading.now->cycle) {
    const double here = std::chrono::duration<double>(at - reading.seen).count();
    follows = std::abs(books.at - reading.now->at - here) < kSlack;
  }
  reading.before = follows ? reading.now : nullptr;
  reading.seen = at;
  reading.now = std::make_shared<const Books>(std::move(books));
}

Feed::Feed(Books first, Read read, Nanoseconds period, const Clock& clock)
    : read_(std::move(read)),
      period_(period),
      clock_(clock),
      news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      began_(clock.now().steady),
      reading_{std::make_shared<const Books>(std::move(first)), nullptr, "", began_},
      thread_([this](const std::stop_token& stop) { return look(stop); }) {}

Reading Feed::latest() const {
  const MutexLock lock(mutex_);
  return reading_;
}

void Feed::forget_news() const {
  uint64_t count = 0;
  while (::read(news_.get(), &count, sizeof count) > 0) {}
}

task::PollThread::Next Feed::look(const std::stop_token& stop) {
  const Nanoseconds began = clock_.now().steady;
  if (began - began_ < period_) return {period_ - (began - began_)};  // the first books are new
  auto books = read_(stop);
  if (stop.stop_requested()) return {period_};
  {
    const MutexLock lock(mutex_);
    if (books.ok()) {
      take_books(std::move(*books), clock_.now().steady, reading_);
    } else {
      if (reading_.trouble.empty()) since_ = clock_.now().wall;
      reading_.trouble =
          books.error().message + "; no answer since " + clock_text(std::chrono::duration<double>(since_).count());
    }
  }
  const uint64_t one = 1;
  (void)!::write(news_.get(), &one, sizeof one);
  return {std::max(Nanoseconds(0), period_ - (clock_.now().steady - began))};
}

std::string clock_text(double seconds_since_1970) {
  const auto seconds = static_cast<time_t>(std::clamp(seconds_since_1970, 0.0, 1e11));
  tm parts{};
  char text[16] = {};
  if (::localtime_r(&seconds, &parts) == nullptr || std::strftime(text, sizeof text, "%H:%M:%S", &parts) == 0)
    return "?";
  return text;
}

}  // namespace gpuledger::app::top
