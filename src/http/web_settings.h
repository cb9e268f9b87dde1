// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "http/password_check.h"
#include "http/tls_context.h"
#include "http/token_bucket.h"
#include "http/watched_file.h"
#include "http/web_config.h"

namespace gpuledger::http {

// One reading of the web config and its files. Shared by connections that began under it.
struct WebState {
  WebConfig config;
  std::shared_ptr<TlsContext> tls;           // none: plain HTTP
  std::unique_ptr<PasswordCheck> passwords;  // none: no authentication
  TokenBucket bucket{RateLimit{}};           // io thread only
};

// The current web config. A file that is unusable, or protects less, never replaces a usable one; its certificates are
// still read again when they change.
class WebSettings {
 public:
  // on_change gets the result of every automatic reload. It is called on the thread of reload_if_changed and must not
  // call back.
  using OnChange = std::function<void(const Status&)>;

  // Empty path: plain HTTP, no authentication.
  static Result<std::shared_ptr<WebSettings>> open(std::string path, OnChange on_change);

  std::shared_ptr<WebState> current() const;
  Status reload();
  void reload_if_changed();
  // After this, on_change is not called any more.
  void close();

 private:
  WebSettings(std::string path, OnChange on_change)
      : path_(std::move(path)),
        on_change_(std::move(on_change)),
        current_(path_.empty() ? std::make_shared<WebState>() : nullptr) {}
  Status reload_locked() GL_REQUIRES(reload_mutex_);
  Result<WebConfig> read_config(const WebState* earlier) const;
  void watch_certificates(const WebConfig& config) GL_REQUIRES(reload_mutex_);
  Status use(WebConfig config, const WebState* earlier);

  const std::string path_;
  Mutex reload_mutex_;  // held while files are read
  std::vector<FileStamp> stamps_ GL_GUARDED_BY(reload_mutex_);
  Mutex on_change_mutex_;
  OnChange on_change_ GL_GUARDED_BY(on_change_mutex_);
  mutable Mutex current_mutex_;  // held for a pointer copy only: requests wait for it
  std::shared_ptr<WebState> current_ GL_GUARDED_BY(current_mutex_);
};

}  // namespace gpuledger::http
