// SPDX-License-Identifier: Apache-2.0
#include "http/web_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "http/protection.h"

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

Result<WebConfig> WebSettings::read_config(const WebState* earlier) const {
  GL_TRY(text, read_file(path_, kLargestWatchedFile).about("--web-config-file"));
  GL_TRY(config, parse_web_config(text, path_));
  if (earlier) GL_TRY_STATUS(check_keeps_protection(earlier->config, config).about("web config " + path_));
  return config;
}

void WebSettings::watch_certificates(const WebConfig& config) {
  if (!config.tls) return;
  for (const PemSource* source : {&config.tls->cert, &config.tls->key, &config.tls->client_ca})
    if (!source->file.empty()) stamps_.push_back(read_file_stamp(source->file));
}

Status WebSettings::use(WebConfig config, const WebState* earlier) {
  auto state = std::make_shared<WebState>();
  if (config.tls) {
    GL_TRY(tls, TlsContext::read(*config.tls, path_));
    state->tls = std::move(tls);
  }
  if (!config.users.empty())
    state->passwords = std::make_unique<PasswordCheck>(config.users, earlier ? earlier->passwords.get() : nullptr);
  state->bucket = TokenBucket(config.rate_limit);
  state->config = std::move(config);

  MutexLock lock(current_mutex_);
  current_.swap(state);
  return ok_status();
}

Status WebSettings::reload_locked() {
  const auto earlier = current();
  // Stamped before reading, so that a change meanwhile shows next time; also on failure, so that a broken file is
  // reported once and not every second.
  const auto before = std::exchange(stamps_, {read_file_stamp(path_)});
  auto config = read_config(earlier.get());
  if (config.ok()) {
    watch_certificates(*config);
    return use(std::move(*config), earlier.get());
  }
  if (!earlier) return config.error();
  // The file may stay as it is for weeks, and the certificates in use must not expire meanwhile.
  watch_certificates(earlier->config);
  if (!std::equal(before.begin() + 1, before.end(), stamps_.begin() + 1, stamps_.end()))
    GL_TRY_STATUS(use(earlier->config, earlier.get()));
  return config.error();
}

}  // namespace gpuledger::http
