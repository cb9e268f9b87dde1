// SPDX-License-Identifier: Apache-2.0
#include "http/web_settings.h"

#include <fmt/core.h>

#include <utility>

#include "base/file.h"

namespace gpuledger::http {

Result<std::shared_ptr<WebSettings>> WebSettings::open(std::string path, OnChange on_change) {
  std::shared_ptr<WebSettings> settings(new WebSettings(std::move(path), std::move(on_change)));
  GL_TRY_STATUS(settings->reload());
  return settings;
}

std::shared_ptr<WebState> WebSettings::current() const {
  MutexLock lock(current_mutex_);
  return current_;
}

Status WebSettings::reload() {
  if (path_.empty()) return ok_status();
  MutexLock lock(reload_mutex_);
  return reload_locked();
}

void WebSettings::reload_if_changed() {
  if (path_.empty()) return;
  MutexLock lock(reload_mutex_);
  bool changed = false;
  for (const FileStamp& stamp : stamps_) changed = changed || read_file_stamp(stamp.path) != stamp;
  if (!changed) return;
  const Status outcome = reload_locked();
  lock.unlock();
  MutexLock callback_lock(on_change_mutex_);
  if (on_change_) on_change_(outcome);
}

void WebSettings::close() {
  MutexLock lock(on_change_mutex_);
  on_change_ = nullptr;
}

Status WebSettings::reload_locked() {
  // Stamped before reading, so that a change meanwhile shows next time; also on failure, so that a broken file is
  // reported once and not every second.
  stamps_ = {read_file_stamp(path_)};
  GL_TRY(text, read_file(path_, kLargestWatchedFile).about("--web-config-file"));
  GL_TRY(config, parse_web_config(text, path_));

  auto state = std::make_shared<WebState>();
  if (config.tls) {
    for (const PemSource* source : {&config.tls->cert, &config.tls->key, &config.tls->client_ca})
      if (!source->file.empty()) stamps_.push_back(read_file_stamp(source->file));
    GL_TRY(tls, TlsContext::read(*config.tls, path_));
    state->tls = std::move(tls);
  }
  const auto earlier = current();
  if (!config.users.empty())
    state->passwords = std::make_unique<PasswordCheck>(config.users, earlier ? earlier->passwords.get() : nullptr);
  state->bucket = TokenBucket(config.rate_limit);
  state->config = std::move(config);

  MutexLock lock(current_mutex_);
  current_.swap(state);
  return ok_status();
}

}  // namespace gpuledger::http
