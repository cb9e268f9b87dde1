// SPDX-License-Identifier: Apache-2.0
#include "door/door_driver.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gpuledger::sim {

using namespace switch_trace;

namespace {

constexpr uint32_t kInvalidArgument = 0x1f;
constexpr uint32_t kInvalidObject = 0x33;
constexpr uint32_t kGpuIdOfMinor = 0x100;

template <typename T>
T* params_of(uint64_t pointer, uint32_t size) {
  return size == sizeof(T) ? reinterpret_cast<T*>(pointer) : nullptr;
}

}  // namespace

bool DoorDriver::fails_now(int* error, uint32_t* status) {
  const size_t call = calls_++;
  if (!fault_ || fault_->call != call) return false;
  *error = fault_->error;
  *status = fault_->status;
  return true;
}

int DoorDriver::open(const char* path) {
  std::lock_guard lock(mutex_);
  int error = 0;
  uint32_t status = 0;
  if (fails_now(&error, &status)) return error != 0 ? -error : -EIO;
  Node node;
  if (std::strcmp(path, "/dev/nvidiactl") != 0) {
    const auto card = std::find_if(cards_.begin(), cards_.end(), [&](const Card& each) {
      return "/dev/nvidia" + std::to_string(each.minor) == path;
    });
    if (card == cards_.end()) return -ENOENT;
    node.minor = static_cast<int32_t>(card->minor);
  }
  nodes_[next_fd_] = node;
  return next_fd_++;
}

int DoorDriver::ioctl(int fd, unsigned long request, void* argument) {
  std::function<void()> hook;
  if (request == ioctl_request(kIoctlControl, sizeof(RmControl))) {
    const uint32_t command = static_cast<RmControl*>(argument)->command;
    hook = command == kControlMoveGet ? on_move_get : command == kControlFlush ? on_flush : nullptr;
  }
  if (hook) hook();
  std::lock_guard lock(mutex_);
  int error = 0;
  uint32_t forced = 0;
  if (fails_now(&error, &forced) && error != 0) return -error;
  const auto node = nodes_.find(fd);
  if (node == nodes_.end()) return -EBADF;
  const auto is = [&](unsigned number, size_t size) { return request == ioctl_request(number, size); };
  const auto answer = [&](auto& arg, auto act) {
    arg.status = forced != 0 ? forced : act(arg);
    return 0;
  };
  if (is(kIoctlVersion, sizeof(VersionQuery))) {
    if (forced != 0) return -EIO;
    return tell_version(*static_cast<VersionQuery*>(argument));
  }
  if (is(kIoctlCards, sizeof(CardInfo) * kMostCards)) {
    if (forced != 0) return -EIO;
    return list_cards(static_cast<CardInfo*>(argument));
  }
  if (is(kIoctlTieToControl, sizeof(int32_t))) {
    if (node->second.minor < 0 || !nodes_.contains(*static_cast<int32_t*>(argument)) || forced != 0) return -EINVAL;
    node->second.control = *static_cast<int32_t*>(argument);
    return 0;
  }
  if (is(kIoctlAlloc, sizeof(RmAlloc)))
    return answer(*static_cast<RmAlloc*>(argument), [&](RmAlloc& arg) { return allocate(fd, arg); });
  if (is(kIoctlControl, sizeof(RmControl)))
    return answer(*static_cast<RmControl*>(argument), [&](RmControl& arg) { return control(arg); });
  if (is(kIoctlFree, sizeof(RmFree)))
    return answer(*static_cast<RmFree*>(argument), [&](RmFree& arg) { return free_object(arg.old); });
  if (is(kIoctlMap, sizeof(RmMap)))
    return answer(*static_cast<RmMap*>(argument), [&](RmMap& arg) { return map_memory(arg); });
  if (is(kIoctlUnmap, sizeof(RmUnmap)))
    return answer(*static_cast<RmUnmap*>(argument), [&](RmUnmap& arg) {
      Object* memory = find(arg.memory);
      if (memory == nullptr || !memory->mapped) return kInvalidObject;
      memory->mapped = false;
      return uint32_t{kRmOk};
    });
  return -ENOTTY;
}

int DoorDriver::tell_version(VersionQuery& query) const {
  if (query.command != '2') return -EINVAL;
  std::strncpy(query.version, version_.c_str(), sizeof query.version - 1);
  query.reply = 1;
  return 0;
}

int DoorDriver::list_cards(CardInfo* cards) const {
  for (const Card& card : cards_) {
    *cards = CardInfo{};
    cards->valid = 1;
    cards->domain = card.domain;
    cards->bus = card.bus;
    cards->slot = card.slot;
    cards->gpu_id = kGpuIdOfMinor + card.minor;
    (cards++)->minor = card.minor;
  }
  return 0;
}

DoorDriver::Object* DoorDriver::find(Handle handle) {
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : &found->second;
}

uint32_t DoorDriver::gpu_status(uint32_t minor) const {
  const auto found = gpu_statuses_.find(minor);
  return found == gpu_statuses_.end() ? uint32_t{kRmOk} : found->second;
}

uint32_t DoorDriver::allocate(int fd, RmAlloc& request) {
  Object object;
  object.object_class = request.object_class;
  object.fd = fd;
  object.client = request.root;
  object.parent = request.parent;
  const Object* parent = find(request.parent);
  if (request.object_class != kClassClient && (parent == nullptr || find(request.root) == nullptr))
    return kInvalidObject;
  switch (request.object_class) {
    case kClassClient: break;
    case kClassDevice: {
      const auto* params = params_of<DeviceParams>(request.params, request.params_size);
      if (params == nullptr || params->client_share != request.root) return kInvalidArgument;
      object.minor = params->device_id;
      break;
    }
    case kClassSubdevice: {
      if (params_of<SubdeviceParams>(request.params, request.params_size) == nullptr) return kInvalidArgument;
      object.minor = parent->minor;
      break;
    }
    case kClassMemory: {
      const auto* params = reinterpret_cast<const MemoryParams*>(request.params);
      const bool whole = request.params_size == 120 || request.params_size == 128;
      if (!whole || params->attr != kMemoryCachedInHost || params->attr2 != kMemoryUserReadsOnly)
        return kInvalidArgument;
      object.memory.resize(params->size);
      break;
    }
    case kClassEventBuffer: {
      const auto* params = params_of<EventBufferParams>(request.params, request.params_size);
      if (params == nullptr) return kInvalidArgument;
      if (const uint32_t wrong = check_event_buffer(*params); wrong != kRmOk) return wrong;
      object.ring = *params;
      object.minor = find(params->subdevice)->minor;
      break;
    }
    default: return kInvalidArgument;
  }
  if (const uint32_t status = gpu_status(object.minor); request.object_class != kClassClient && status != kRmOk)
    return status;
  request.fresh = next_handle_++;
  if (request.object_class == kClassClient) object.client = request.fresh;
  objects_.emplace(request.fresh, std::move(object));
  return kRmOk;
}

// The real one follows a null pointer without a subdevice, and writes past the end with another record size.
uint32_t DoorDriver::check_event_buffer(const EventBufferParams& params) {
  const Object* header = find(params.header_memory);
  const Object* records = find(params.record_memory);
  if (find(params.subdevice) == nullptr || header == nullptr || records == nullptr) return kInvalidObject;
  if (params.record_size != sizeof(SwitchRecord)) return kInvalidArgument;
  if (records->memory.size() < size_t{params.record_count} * sizeof(SwitchRecord)) return kInvalidArgument;
  return kRmOk;
}

uint32_t DoorDriver::control(RmControl& request) {
  controls_.push_back(request.command);
  Object* object = find(request.object);
  if (object == nullptr || find(request.client) == nullptr) return kInvalidObject;
  if (object->object_class != kClassClient) {
    if (const uint32_t status = gpu_status(object->minor); status != kRmOk) return status;
  }
  if (request.command == kControlIdOfGpu) {
    auto* params = params_of<IdOfGpu>(request.params, request.params_size);
    if (params == nullptr) return kInvalidArgument;
    params->device_instance = params->gpu_id - kGpuIdOfMinor;
    return kRmOk;
  }
  if (request.command == kControlGpuTime) {
    auto* params = params_of<uint64_t>(request.params, request.params_size);
    if (params == nullptr) return kInvalidArgument;
    *params = clock_(object->minor);
    return kRmOk;
  }
  if (request.command == kControlBind) {
    auto* params = params_of<BindParams>(request.params, request.params_size);
    return params == nullptr ? kInvalidArgument : bind(*object, *params);
  }
  if (object->object_class == kClassEventBuffer) return control_event_buffer(*object, request);
  return kInvalidArgument;
}

uint32_t DoorDriver::bind(Object& subdevice, BindParams& params) {
  Object* buffer = find(params.event_buffer);
  if (subdevice.object_class != kClassSubdevice || buffer == nullptr) return kInvalidObject;
  if (params.record_size != kBoundRecordSize || params.all_users != 1) return kInvalidArgument;
  if (const auto refused = refused_binds_.find(subdevice.minor); refused != refused_binds_.end()) {
    params.reason = refused->second.second;
    if (refused->second.first != kRmOk) return refused->second.first;
  }
  buffer->bound = true;
  return kRmOk;
}

uint32_t DoorDriver::control_event_buffer(Object& buffer, const RmControl& request) {
  if (request.command == kControlEnable) {
    const auto* params = params_of<EnableParams>(request.params, request.params_size);
    if (params == nullptr || params->flags != kKeepOldest) return kInvalidArgument;
    buffer.enabled = params->enable != 0;
    return kRmOk;
  }
  if (request.command == kControlMoveGet) {
    const auto* params = params_of<MoveGetParams>(request.params, request.params_size);
    if (params == nullptr || params->record_get >= buffer.ring.record_count) return kInvalidArgument;
    RingHeader* header = header_of(buffer);
    header->record_get = params->record_get;
    __atomic_store_n(&header->record_drops, 0, __ATOMIC_RELEASE);
    ++move_gets_;
    return kRmOk;
  }
  return request.command == kControlFlush && request.params_size == 0 ? uint32_t{kRmOk} : kInvalidArgument;
}

uint32_t DoorDriver::free_object(Handle handle) {
  if (objects_.erase(handle) == 0) return kInvalidObject;
  std::erase_if(objects_, [&](const auto& entry) { return entry.second.client == handle; });
  return kRmOk;
}

uint32_t DoorDriver::map_memory(const RmMap& request) {
  Object* memory = find(request.memory);
  const auto node = nodes_.find(request.fd);
  if (memory == nullptr || node == nodes_.end() || node->second.memory != 0) return kInvalidObject;
  if (request.device != request.client || request.flags != kMapReadOnly) return kInvalidArgument;
  if (request.length != memory->memory.size()) return kInvalidArgument;
  memory->mapped = true;
  node->second.memory = request.memory;
  return kRmOk;
}

const void* DoorDriver::map(int fd, size_t length) {
  std::lock_guard lock(mutex_);
  int error = 0;
  uint32_t status = 0;
  if (fails_now(&error, &status)) return nullptr;
  const auto node = nodes_.find(fd);
  Object* memory = node == nodes_.end() ? nullptr : find(node->second.memory);
  if (memory == nullptr || memory->memory.size() != length) return nullptr;
  mapped_[memory->memory.data()] = length;
  return memory->memory.data();
}

void DoorDriver::unmap(const void* memory, size_t length) {
  std::lock_guard lock(mutex_);
  const auto found = mapped_.find(memory);
  if (found != mapped_.end() && found->second == length) mapped_.erase(found);
}

// Closing the node that a client was made with frees the client and all its objects.
void DoorDriver::close(int fd) {
  std::lock_guard lock(mutex_);
  nodes_.erase(fd);
  std::erase_if(objects_, [&](const auto& entry) { return entry.second.fd == fd; });
}

RingHeader* DoorDriver::header_of(const Object& buffer) {
  return reinterpret_cast<RingHeader*>(find(buffer.ring.header_memory)->memory.data());
}

}  // namespace gpuledger::sim
