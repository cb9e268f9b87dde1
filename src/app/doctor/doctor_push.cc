// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/doctor/doctor.h"
#include "app/push/receiver.h"
#include "app/runtime/wiring.h"

namespace gpuledger::app {
namespace {

using Level = Finding::Level;

// A request without series, compressed: it stores nothing.
constexpr std::string_view kNothing("\0", 1);

Finding check_receiver(ReceiverOptions receiver) {
  receiver.answer_within = std::chrono::seconds(5);
  const net::Interrupt never;
  const PushOutcome outcome = post_block(receiver, kNothing, never);
  switch (outcome.verdict) {
    case PushOutcome::Verdict::kTaken: return {Level::kOk, "push", receiver.url.text + " takes remote write"};
    case PushOutcome::Verdict::kRefused:
      return {Level::kWarn, "push", outcome.reason + " (to a request without samples, which some receivers refuse)"};
    case PushOutcome::Verdict::kLater: break;
  }
  return {Level::kFail, "push", outcome.reason};
}

Finding check_queue(const std::string& folder) {
  if (folder.empty())
    return {Level::kWarn, "push queue",
            "in memory: samples that are not sent yet are lost when the program ends; --push-queue-dir keeps them"};
  std::error_code failed;
  const std::filesystem::path path(folder);
  const bool there = std::filesystem::exists(path, failed);
  const std::string written = there ? folder : (path.has_parent_path() ? path.parent_path().string() : ".");
  if (!std::filesystem::is_directory(written, failed))
    return {Level::kFail, "push queue", written + " is not a folder: create it, or choose another"};
  if (::access(written.c_str(), R_OK | W_OK | X_OK) != 0)
    return {Level::kFail, "push queue", written + ": " + std::strerror(errno) + ": let this user write to the folder"};
  return {Level::kOk, "push queue", folder + (there ? " can be written" : " will be created")};
}

}  // namespace

Findings check_push(const Config& config) {
  const auto options = push_options(config);
  if (!options) return {};
  return {check_receiver(options->receiver), check_queue(options->queue_folder)};
}

}  // namespace gpuledger::app
