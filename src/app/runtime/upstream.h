// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/http_url.h"
#include "base/mutex.h"
#include "base/result.h"
#include "expose/upstream_parse.h"
#include "model/sample.h"
#include "task/poll_thread.h"

namespace gpuledger::app {

struct UpstreamOptions {
  std::optional<HttpUrl> url;
  std::string file;  // used without a url

  Nanoseconds url_period = std::chrono::seconds(10);
  Nanoseconds file_period = std::chrono::seconds(1);  // one stat, unless the file has changed
  Nanoseconds after_failure = std::chrono::seconds(10);
  Nanoseconds answer_within = std::chrono::seconds(5);
  // Older metrics are not shown: by the file's time, or by when the answer came.
  Nanoseconds stale_after = std::chrono::seconds(60);
};

// A dcgm-exporter beside us, read by its own thread: a scrape never waits for it. Invalid text is not shown; the last
// valid one stays until it is stale.
class Upstream {
 public:
  Upstream(UpstreamOptions options, const Clock& clock);

  // An error: it has no thread and reads nothing.
  const Status& started() const { return thread_.started(); }

  // Any thread. Null: nothing fresh.
  std::shared_ptr<const expose::UpstreamText> view(Timestamp now) const;
  SourceHealth health() const;
  // Waits for the first read, so that the first cycle has metrics or an error.
  bool wait(Nanoseconds patience) const;

 private:
  struct FileState {
    uint64_t inode = 0;
    int64_t size = 0;
    Nanoseconds written{0};  // wall
    friend bool operator==(const FileState&, const FileState&) = default;
  };

  task::PollThread::Next look(const std::stop_token& stop);
  Status read_url(const std::stop_token& stop);
  Status read_file_again();
  Result<FileState> read_state() const;
  Status take(std::string_view text, Nanoseconds as_of);
  Nanoseconds age_of(const FileState& state) const;

  const UpstreamOptions options_;
  const Clock& clock_;
  std::optional<FileState> last_file_;  // the thread's own: that of text_
  std::string code_;                    // same: code of the returned failure, if Code has no name for it

  mutable Mutex mutex_;
  mutable std::condition_variable_any looked_;
  bool has_looked_ GL_GUARDED_BY(mutex_) = false;
  SourceHealth health_ GL_GUARDED_BY(mutex_);
  Nanoseconds as_of_ GL_GUARDED_BY(mutex_) = Nanoseconds(0);  // steady; that of text_
  std::shared_ptr<const expose::UpstreamText> text_ GL_GUARDED_BY(mutex_);
  task::PollThread thread_;  // last: it uses the others
};

}  // namespace gpuledger::app
