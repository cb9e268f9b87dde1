// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/mutex.h"
#include "base/result.h"
#include "identity/node_directory.h"
#include "task/health_cell.h"

// The simulated node's replacement for sockets: files with the same answers, read again when they change.
namespace gpuledger::app {

// Reads a file and keeps the view of its last good text.
template <typename View>
class ViewFile {
 public:
  using Parse = std::function<Result<std::shared_ptr<const View>>(std::string_view text)>;
  ViewFile(std::string source, std::string path, Parse parse)
      : path_(std::move(path)), parse_(std::move(parse)), health_(std::move(source)) {}

  std::shared_ptr<const View> view() const;
  SourceHealth health() const { return health_.get(); }

 private:
  const std::string path_;
  const Parse parse_;
  mutable task::HealthCell health_;
  mutable Mutex mutex_;
  using Stamp = std::tuple<uint64_t, int64_t, int64_t, int64_t>;  // inode, size, when it was written
  mutable Stamp last_ GL_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const View> view_ GL_GUARDED_BY(mutex_);
};

// A kubelet's /pods.
class PodFile final : public identity::PodSource {
 public:
  PodFile(std::string path, identity::PodLabelList labels);
  std::shared_ptr<const identity::PodView> view() const override { return file_.view(); }
  SourceHealth health() const override { return file_.health(); }

 private:
  ViewFile<identity::PodView> file_;
};

// The kubelet's pod-resources, in protobuf's JSON form.
class AllocationFile final : public identity::AllocationSource {
 public:
  explicit AllocationFile(std::string path);
  std::shared_ptr<const identity::GrantView> view() const override { return file_.view(); }
  SourceHealth health() const override { return file_.health(); }

 private:
  ViewFile<identity::GrantView> file_;
};

// Docker's list of containers.
class ContainerFile final : public identity::ContainerSource {
 public:
  explicit ContainerFile(std::string path);
  std::string_view runtime() const override { return "docker"; }
  std::shared_ptr<const identity::ContainerNames> view() const override { return file_.view(); }
  SourceHealth health() const override { return file_.health(); }

 private:
  ViewFile<identity::ContainerNames> file_;
};

}  // namespace gpuledger::app
