// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/grpc_outcome.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLongestMessage = 300;

// By status code.
constexpr std::array kStatusNames = {
    "ok",        "cancelled",      "unknown",           "invalid_argument",   "deadline_exceeded",
    "not_found", "already_exists", "permission_denied", "resource_exhausted", "failed_precondition",
    "aborted",   "out_of_range",   "unimplemented",     "internal",           "unavailable",
    "data_loss", "unauthenticated"};

// 0 if a server listens there.
int connect_errno(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
}

}  // namespace

GrpcOutcome read_outcome(int status, const std::string& message, const std::string& socket) {
  const bool named = status >= 0 && static_cast<size_t>(status) < kStatusNames.size();
  GrpcOutcome outcome{named ? kStatusNames[static_cast<size_t>(status)] : "unknown",
                      message.substr(0, kLongestMessage)};
  for (char& c : outcome.message) {
    if (c < 0x20 || c > 0x7e) c = ' ';
  }
  // gRPC has one code for "rate limited" (from the server) and "answer too large" (from our side).
  if (outcome.code == "resource_exhausted") {
    // The second text: the connection's quota was used up in the middle of a message.
    const bool too_big = outcome.message.find("larger than max") != std::string::npos ||
                         outcome.message.find("Buffers full") != std::string::npos;
    outcome.code = too_big ? "too_large" : "rate_limited";
  }
  const int why = outcome.code == "unavailable" ? connect_errno(socket) : 0;
  if (why == ENOENT || why == ENOTDIR) outcome.code = "no_socket";
  if (why == EACCES || why == EPERM) outcome.code = "no_permission";
  if (why != 0) outcome.message = std::strerror(why);
  return outcome;
}

std::string failure_reason(const GrpcOutcome& outcome, const std::string& socket) {
  const std::string folder = std::filesystem::path(socket).parent_path().string();
  if (outcome.code == "no_socket") return socket + " is not there: mount the folder " + folder + ", not the socket";
  if (outcome.code == "no_permission") {
    return socket + " may not be opened by uid " + std::to_string(::geteuid()) +
           ", so names are missing: run as uid 0 (runAsUser: 0), which needs no capability";
  }
  if (outcome.code == "unavailable") {
    return "no server answers on " + socket + " (" + outcome.message +
           "); where the socket itself was mounted, mount the folder " + folder + " instead";
  }
  if (outcome.code == "deadline_exceeded") return socket + " took too long to answer; see the log of its server";
  return outcome.message.empty() ? outcome.code : outcome.code + ": " + outcome.message;
}

}  // namespace gpuledger::identity
