// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "identity/container_source.h"
#include "task/health_cell.h"
#include "task/poll_thread.h"

namespace gpuledger::identity {

struct DockerOptions {
  std::string runtime = "docker";
  std::string socket = "/var/run/docker.sock";

  std::chrono::nanoseconds period = std::chrono::seconds(15);
  std::chrono::nanoseconds answer_within = std::chrono::seconds(10);
  std::chrono::nanoseconds keep_gone = std::chrono::minutes(5);  // the last samples still need a name
  const task::Timer* timer = &task::system_timer();

  static DockerOptions docker() { return {}; }
  // Polled less often: by default systemd starts podman's service anew for every request. Unknown containers cause a
  // request at once.
  static DockerOptions podman() {
    DockerOptions options;
    options.runtime = "podman";
    options.socket = "/run/podman/podman.sock";
    options.period = std::chrono::minutes(1);
    return options;
  }
};

// Whether such a daemon exists here. Also true if the socket exists but cannot be opened: the source then reports it.
bool container_socket_exists(const std::string& path);

// Names of containers from docker's API, which podman speaks too.
class DockerNames final : public ContainerSource {
 public:
  explicit DockerNames(DockerOptions options);

  std::string_view runtime() const override { return options_.runtime; }
  std::shared_ptr<const ContainerNames> view() const override;
  std::string user() const override;
  SourceHealth health() const override { return health_.get(); }
  void look_again() override { thread_.ask(); }

 private:
  struct Known {
    std::string name;
    task::Timer::Time seen;
  };
  task::PollThread::Next look(const std::stop_token& stop);
  void add(std::string_view container, task::Timer::Time now);
  void publish(task::Timer::Time now, std::optional<uint32_t> user);

  const DockerOptions options_;
  task::HealthCell health_;
  std::unordered_map<std::string, Known> known_;  // the thread's own
  mutable Mutex mutex_;
  std::shared_ptr<const ContainerNames> view_ GL_GUARDED_BY(mutex_);
  std::string user_ GL_GUARDED_BY(mutex_);
  task::PollThread thread_;  // last: it uses the others
};

}  // namespace gpuledger::identity
