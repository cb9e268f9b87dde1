// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/docker_names.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "identity/sources/docker_container.h"
#include "identity/sources/json_stream.h"
#include "identity/sources/service_account.h"
#include "net/http_client.h"

namespace gpuledger::identity {
namespace {

using Time = task::Timer::Time;
constexpr uint64_t kLargestList = 16 << 20;
constexpr size_t kMostContainers = 10'000;

const char* advice(Code code) {
  switch (code) {
    case Code::kPermission: return "; run as root or as a member of the socket's group";
    case Code::kNotFound: return "; mount the directory of the socket";
    case Code::kUnavailable:
    case Code::kTimeout: return "; does its daemon run?";
    default: return "";
  }
}

}  // namespace

bool container_socket_exists(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) == 0) return S_ISSOCK(file.st_mode);
  return errno != ENOENT && errno != ENOTDIR;
}

DockerNames::DockerNames(DockerOptions options)
    : options_(std::move(options)),
      health_(options_.runtime),
      thread_([this](const std::stop_token& stop) { return look(stop); }, *options_.timer) {
  health_.needs_thread(thread_.started());
}

std::shared_ptr<const ContainerNames> DockerNames::view() const {
  const MutexLock lock(mutex_);
  return view_;
}

std::string DockerNames::user() const {
  const MutexLock lock(mutex_);
  return user_;
}

task::PollThread::Next DockerNames::look(const std::stop_token& stop) {
  const net::Peer peer{options_.socket, "", 0, std::nullopt};
  const auto failed = [&](const Error& error) {
    health_.fails(code_name(error.code),
                  options_.runtime + " " + peer.text() + ": " + error.message + advice(error.code));
    return task::PollThread::Next{options_.period};
  };
  net::HttpRequest request;
  // Without a version the daemon uses its own; ids and names are the same in all versions.
  request.target = "/containers/json?all=1";
  request.connect_within = request.head_within = request.longest_silence = request.whole_within =
      options_.answer_within;
  request.largest_body = kLargestList;
  const net::Interrupt interrupt(stop);
  const Time now = options_.timer->now();
  JsonStream list(JsonStream::Shape::kArray, [&](std::string_view container) { add(container, now); });
  Status fed = ok_status();
  auto reply = net::HttpClient(peer, user_agent(), interrupt).get(request, [&](std::string_view bytes) {
    fed = list.feed(bytes);
    return fed.ok();
  });
  if (interrupt.raised()) return {options_.period};
  if (!reply.ok()) return failed(reply.error());
  if (reply->status != 200) {
    const std::string status = std::to_string(reply->status);
    health_.fails("http_" + status,
                  options_.runtime + " " + peer.text() + " answers " + status + "; is it the daemon's own socket?");
    return {options_.period};
  }
  if (!fed.ok()) return failed(fed.error());
  if (!list.complete()) return failed({Code::kMalformed, "a truncated list"});
  for (uint64_t i = 0; i < list.skipped(); ++i) health_.counts("malformed");
  publish(now, reply->peer_user);
  health_.works();
  return {options_.period};
}

void DockerNames::add(std::string_view text, Time now) {
  auto container = parse_docker_container(text);
  const bool room = container && (known_.size() < kMostContainers || known_.contains(container->id));
  if (!room) return health_.counts("malformed");
  if (!container->name.empty()) known_[std::move(container->id)] = {std::move(container->name), now};
}

void DockerNames::publish(Time now, std::optional<uint32_t> user) {
  std::erase_if(known_, [&](const auto& entry) { return now - entry.second.seen > options_.keep_gone; });
  auto names = std::make_shared<ContainerNames>();
  names->reserve(known_.size());
  for (const auto& [id, known] : known_) names->emplace(id, known.name);
  const MutexLock lock(mutex_);
  view_ = std::move(names);
  user_ = user ? std::to_string(*user) : std::string();
}

}  // namespace gpuledger::identity
