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
  std::string file;  // where there is no url

  Nanoseconds url_period = std::chrono::seconds(10);
  Nanoseconds file_period = std::chrono::seconds(1);  // one stat, unless it is another file than the last time
  Nanoseconds after_failure = std::chrono::seconds(10);
  Nanoseconds answer_within = std::chrono::seconds(5);
  // Numbers older than this are nobody's present: by the file's time, or by when the answer came.
  Nanoseconds stale_after = std::chrono::seconds(60);
};

// A dcgm-exporter that runs beside us, read by a thread of its own: a scrape never waits for it. What cannot be trusted
// is not shown; the last that could stays until it is stale.
class Upstream {
 public:
  Upstream(UpstreamOptions options, const Clock& clock);

  // Any thread. Null: nothing that is fresh enough.
  std::shared_ptr<const expose::UpstreamText> view(Timestamp now) const;
  SourceHealth health() const;
  // For the first look, so that the first cycle has something to show or to say.
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
  std::string code_;  // likewise: of the failure that is being returned, where Code has no name for it

  mutable Mutex mutex_;
  mutable std::condition_variable_any looked_;
  bool has_looked_ GL_GUARDED_BY(mutex_) = false;
  SourceHealth health_ GL_GUARDED_BY(mutex_);
  Nanoseconds as_of_ GL_GUARDED_BY(mutex_) = Nanoseconds(0);  // steady; that of text_
  std::shared_ptr<const expose::UpstreamText> text_ GL_GUARDED_BY(mutex_);
  task::PollThread thread_;  // last: it uses the others
};

}  // namespace gpuledger::app
