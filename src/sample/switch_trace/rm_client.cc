// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/rm_client.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace gpuledger::switch_trace {
namespace {

constexpr const char* kControlNode = "/dev/nvidiactl";
constexpr uint32_t kQueryVersion = '2';

Code code_of_errno(int error) {
  if (error == EACCES || error == EPERM) return Code::kPermission;
  if (error == ENOENT || error == ENODEV || error == ENXIO) return Code::kNotFound;
  return Code::kUnavailable;
}

Code code_of_status(uint32_t status) {
  if (status == kRmNotPermitted) return Code::kPermission;
  if (status == kRmNotSupported) return Code::kNotSupported;
  return Code::kUnavailable;
}

Error errno_failure(const std::string& what, int error) {
  return {code_of_errno(error), what + ": " + std::strerror(error)};
}

Result<int> open_node(DriverDoor& door, const std::string& path) {
  const int fd = door.open(path.c_str());
  if (fd < 0) return errno_failure(path + " cannot be opened", -fd);
  return fd;
}

}  // namespace

std::string describe_status(uint32_t status) {
  const char* words = "refused";
  switch (status) {
    case kRmGpuLost: words = "the GPU is lost"; break;
    case kRmGpuInReset: words = "the GPU is being reset"; break;
    case kRmNotPermitted: words = "not permitted"; break;
    case kRmNoMemory: words = "no memory"; break;
    case kRmNotSupported: words = "not supported"; break;
    default: break;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%s (0x%02x)", words, status);
  return text;
}

template <typename Argument>
Status RmClient::send(const char* what, int fd, unsigned number, Argument& argument) {
  const int failed = door_->ioctl(fd, ioctl_request(number, sizeof argument), &argument);
  if (failed != 0) return errno_failure(std::string("the driver was asked for ") + what, -failed);
  if constexpr (requires { argument.status; }) {
    if (argument.status != kRmOk) {
      return Error{code_of_status(argument.status),
                   std::string("the driver was asked for ") + what + ": " + describe_status(argument.status)};
    }
  }
  return ok_status();
}

Result<std::unique_ptr<RmClient>> RmClient::open(std::shared_ptr<DriverDoor> door) {
  std::unique_ptr<RmClient> client(new RmClient(std::move(door)));
  GL_TRY_STATUS(client->open_control());
  return client;
}

Status RmClient::open_control() {
  GL_TRY(fd, open_node(*door_, kControlNode));
  control_ = fd;
  VersionQuery query{};
  query.command = kQueryVersion;
  GL_TRY_STATUS(send("its version", control_, kIoctlVersion, query));
  version_.assign(query.version, ::strnlen(query.version, sizeof query.version));
  return ok_status();
}

RmClient::~RmClient() {
  for (auto mapping = mappings_.rbegin(); mapping != mappings_.rend(); ++mapping) unmap(*mapping);
  mappings_.clear();
  while (!objects_.empty()) free(objects_.back().parent, objects_.back().handle);
  if (gpu_ >= 0) door_->close(gpu_);
  if (control_ >= 0) door_->close(control_);
}

Result<std::vector<CardInfo>> RmClient::list_cards() {
  struct Cards {
    CardInfo cards[kMostCards];
  };
  Cards reply{};
  GL_TRY_STATUS(send("its GPUs", control_, kIoctlCards, reply));
  std::vector<CardInfo> cards;
  for (const CardInfo& card : reply.cards) {
    if (card.valid != 0) cards.push_back(card);
  }
  return cards;
}

Status RmClient::open_gpu(uint32_t minor) {
  GL_TRY(fd, open_node(*door_, "/dev/nvidia" + std::to_string(minor)));
  gpu_ = fd;
  int32_t control = control_;
  return send("a GPU", gpu_, kIoctlTieToControl, control);
}

Result<Handle> RmClient::allocate(const char* what, Handle parent, uint32_t object_class, void* params, size_t size) {
  RmAlloc request{};
  request.root = client_;
  request.parent = parent;
  request.object_class = object_class;
  request.params = reinterpret_cast<uintptr_t>(params);
  request.params_size = static_cast<uint32_t>(size);
  GL_TRY_STATUS(send(what, control_, kIoctlAlloc, request));
  if (object_class == kClassClient) client_ = request.fresh;
  objects_.push_back({object_class == kClassClient ? request.fresh : parent, request.fresh});
  return request.fresh;
}

Status RmClient::control(const char* what, Handle object, uint32_t command, void* params, size_t size) {
  RmControl request{};
  request.client = client_;
  request.object = object;
  request.command = command;
  request.params = reinterpret_cast<uintptr_t>(params);
  request.params_size = static_cast<uint32_t>(size);
  return send(what, control_, kIoctlControl, request);
}

// A lost GPU refuses; closing the control node then frees the rest.
void RmClient::free(Handle parent, Handle object) {
  RmFree request{};
  request.root = client_;
  request.parent = parent;
  request.old = object;
  (void)send("less", control_, kIoctlFree, request);
  std::erase_if(objects_, [&](const Object& known) { return known.handle == object; });
}

// The kernel needs a separate control node for every mapping.
Result<const void*> RmClient::map(const char* what, Handle memory, size_t length) {
  GL_TRY(fd, open_node(*door_, kControlNode));
  RmMap request{};
  request.client = client_;
  request.device = client_;
  request.memory = memory;
  request.length = length;
  request.flags = kMapReadOnly;
  request.fd = fd;
  if (const Status sent = send(what, control_, kIoctlMap, request); !sent.ok()) {
    door_->close(fd);
    return sent.error();
  }
  Mapping mapping{memory, fd, request.linear, door_->map(fd, length), length};
  if (mapping.address == nullptr) {
    unmap(mapping);
    return Error{Code::kUnavailable, std::string(what) + " cannot be mapped into memory"};
  }
  mappings_.push_back(mapping);
  return mapping.address;
}

void RmClient::unmap(const Mapping& mapping) {
  if (mapping.address != nullptr) door_->unmap(mapping.address, mapping.length);
  RmUnmap request{};
  request.client = client_;
  request.device = client_;
  request.memory = mapping.memory;
  request.linear = mapping.linear;
  (void)send("less", control_, kIoctlUnmap, request);
  door_->close(mapping.fd);
}

}  // namespace gpuledger::switch_trace
