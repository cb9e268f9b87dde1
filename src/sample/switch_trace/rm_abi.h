// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Our own declarations of the part of NVIDIA's kernel interface that the context-switch trace needs (x86-64 and arm64
// Linux, drivers 535 to 595). The driver is called by ioctl on its device nodes, without a library. All calls only
// read: no control that changes a setting is declared, so none can be sent.
namespace gpuledger::switch_trace {

using Handle = uint32_t;

// Numbers of the ioctls; the request includes the argument's size.
inline constexpr unsigned kIoctlFree = 0x29;
inline constexpr unsigned kIoctlControl = 0x2A;
inline constexpr unsigned kIoctlAlloc = 0x2B;
inline constexpr unsigned kIoctlMap = 0x4E;
inline constexpr unsigned kIoctlUnmap = 0x4F;
inline constexpr unsigned kIoctlCards = 200;
inline constexpr unsigned kIoctlTieToControl = 201;
inline constexpr unsigned kIoctlVersion = 210;

// _IOC(read and write, 'F', number, size)
constexpr unsigned long ioctl_request(unsigned number, size_t size) {
  return 3ul << 30 | static_cast<unsigned long>(size) << 16 | static_cast<unsigned long>('F') << 8 | number;
}
static_assert(ioctl_request(kIoctlAlloc, 32) == 0xC020462B && ioctl_request(kIoctlCards, 72 * 32) == 0xC90046C8);

inline constexpr uint32_t kClassClient = 0x41;
inline constexpr uint32_t kClassDevice = 0x80;
inline constexpr uint32_t kClassSubdevice = 0x2080;
inline constexpr uint32_t kClassMemory = 0x90CE;  // in host memory, of no device
inline constexpr uint32_t kClassEventBuffer = 0x90CD;

inline constexpr uint32_t kControlIdOfGpu = 0x205;
inline constexpr uint32_t kControlGpuTime = 0x20800403;
inline constexpr uint32_t kControlBind = 0x20801238;
inline constexpr uint32_t kControlEnable = 0x90CD0101;
inline constexpr uint32_t kControlMoveGet = 0x90CD0102;
inline constexpr uint32_t kControlFlush = 0x90CD0104;

enum RmStatus : uint32_t {
  kRmOk = 0,
  kRmGpuLost = 0x0f,
  kRmGpuInReset = 0x10,
  kRmNotPermitted = 0x1b,
  kRmNoMemory = 0x51,
  kRmNotSupported = 0x56,
};

// Why a bind was refused.
enum BindReason : uint32_t {
  kBindNoReason = 0,
  kBindGpuTooOld = 1,
  kBindOffOnThisGpu = 2,
  kBindOff = 3,  // MIG without a subscription to an instance is one cause
  kBindNeedsAdmin = 4,
  kBindNeedsCapability = 5,
};

struct VersionQuery {
  uint32_t command;  // '2': query only
  uint32_t reply;
  char version[64];
};
static_assert(sizeof(VersionQuery) == 72);

struct CardInfo {
  uint8_t valid;
  uint8_t pad0[3];
  uint32_t domain;
  uint8_t bus, slot, function, pad1;
  uint16_t vendor, device;
  uint32_t gpu_id;
  uint16_t irq;
  uint16_t pad2;
  uint64_t registers_address, registers_size, memory_address, memory_size;
  uint32_t minor;
  char name[10];
  uint8_t pad3[2];
};
static_assert(sizeof(CardInfo) == 72 && offsetof(CardInfo, bus) == 8 && offsetof(CardInfo, gpu_id) == 16 &&
              offsetof(CardInfo, registers_address) == 24 && offsetof(CardInfo, minor) == 56);
inline constexpr size_t kMostCards = 32;

struct RmAlloc {
  Handle root, parent, fresh;
  uint32_t object_class;
  uint64_t params;
  uint32_t params_size;
  uint32_t status;
};
static_assert(sizeof(RmAlloc) == 32 && offsetof(RmAlloc, params) == 16 && offsetof(RmAlloc, status) == 28);

struct RmControl {
  Handle client, object;
  uint32_t command, flags;
  uint64_t params;
  uint32_t params_size;
  uint32_t status;
};
static_assert(sizeof(RmControl) == 32 && offsetof(RmControl, params) == 16 && offsetof(RmControl, status) == 28);

struct RmFree {
  Handle root, parent, old;
  uint32_t status;
};
static_assert(sizeof(RmFree) == 16);

struct RmMap {
  Handle client, device, memory, pad;
  uint64_t offset, length, linear;
  uint32_t status, flags;
  int32_t fd;
  uint32_t pad2;
};
static_assert(sizeof(RmMap) == 56 && offsetof(RmMap, offset) == 16 && offsetof(RmMap, linear) == 32 &&
              offsetof(RmMap, status) == 40 && offsetof(RmMap, fd) == 48);
inline constexpr uint32_t kMapReadOnly = 1;

struct RmUnmap {
  Handle client, device, memory, pad;
  uint64_t linear;
  uint32_t status, flags;
};
static_assert(sizeof(RmUnmap) == 32 && offsetof(RmUnmap, linear) == 16 && offsetof(RmUnmap, status) == 24);

struct IdOfGpu {
  uint32_t gpu_id, flags, device_instance, subdevice_instance, sli, board, gpu_instance;
  int32_t numa;
};
static_assert(sizeof(IdOfGpu) == 32);

struct DeviceParams {
  uint32_t device_id;
  Handle client_share, target_client, target_device;
  uint32_t flags, pad;
  uint64_t va_size, va_start, va_limit;
  uint32_t va_mode, pad2;
};
static_assert(sizeof(DeviceParams) == 56 && offsetof(DeviceParams, va_size) == 24);

struct SubdeviceParams {
  uint32_t subdevice_id;
};
static_assert(sizeof(SubdeviceParams) == 4);

// Branches up to 535 end before numa_node.
struct MemoryParams {
  uint32_t owner, type, flags, width, height, pitch, attr, attr2, format, compression, zcull, pad;
  uint64_t range_low, range_high, size, alignment, offset, limit, address;
  uint32_t ctag;
  Handle va_space;
  uint32_t internal, tag;
  int32_t numa_node;
  uint32_t pad2;
};
static_assert(sizeof(MemoryParams) == 128 && offsetof(MemoryParams, size) == 64 &&
              offsetof(MemoryParams, ctag) == 104 && offsetof(MemoryParams, numa_node) == 120);
inline constexpr uint32_t kMemoryCachedInHost = 0x22000000;
inline constexpr uint32_t kMemoryUserReadsOnly = 0x00400000;

struct EventBufferParams {
  uint64_t header, records;
  uint32_t record_size, record_count;
  uint64_t vardata;
  uint32_t vardata_size, records_free_threshold;
  uint64_t notification_handle;
  uint32_t vardata_threshold;
  Handle subdevice;
  uint32_t flags;
  Handle header_memory, record_memory, vardata_memory;
};
static_assert(sizeof(EventBufferParams) == 72 && offsetof(EventBufferParams, record_size) == 16 &&
              offsetof(EventBufferParams, subdevice) == 52 && offsetof(EventBufferParams, record_memory) == 64);

struct BindParams {
  Handle event_buffer;
  uint32_t record_size, level_of_detail, event_filter;
  uint8_t all_users, pad[3];
  uint32_t reason;
};
static_assert(sizeof(BindParams) == 24 && offsetof(BindParams, all_users) == 16 && offsetof(BindParams, reason) == 20);
inline constexpr uint32_t kBoundRecordSize = 24;

struct EnableParams {
  uint8_t enable, pad[3];
  uint32_t flags;
};
static_assert(sizeof(EnableParams) == 8);
inline constexpr uint32_t kKeepOldest = 1;  // keeping the newest overwrites unread records without a count

struct MoveGetParams {
  uint32_t record_get, vardata_get;
};
static_assert(sizeof(MoveGetParams) == 8);

// At the start of the mapped header; written by the kernel.
struct RingHeader {
  uint32_t record_get, record_put;
  uint64_t record_count, record_drops, vardata_drops;
};
static_assert(sizeof(RingHeader) == 32 && offsetof(RingHeader, record_drops) == 16);

// One record of the ring. The kernel writes 8 + 24 bytes at put * record size without a check, so the size must be 32.
struct SwitchRecord {
  uint16_t type, subtype;
  uint32_t vardata;
  uint8_t tag, vmid;
  uint16_t sequence;
  uint32_t context, pid;
  uint16_t reserved;
  uint8_t gpu_instance, compute_instance;  // 255: MIG is off
  uint64_t timestamp;                      // the GPU's clock, ns
};
static_assert(sizeof(SwitchRecord) == 32 && offsetof(SwitchRecord, tag) == 8 &&
              offsetof(SwitchRecord, sequence) == 10 && offsetof(SwitchRecord, pid) == 16 &&
              offsetof(SwitchRecord, gpu_instance) == 22 && offsetof(SwitchRecord, timestamp) == 24);
inline constexpr uint16_t kRecordType = 2;
inline constexpr uint16_t kRecordTypeOfOlderBind = 134;  // its pid has 64 bits: not as requested

enum RecordTag : uint8_t {
  kTagSwitchRequested = 1,
  kTagAckFirst = 2,
  kTagSaveEnd = 3,
  kTagRestoreStart = 4,
  kTagContextStart = 5,
  kTagStart = 6,
  kTagEnd = 7,
  kTagAckWait = 0x0a,
  kTagAckLast = 0x0d,
  kTagEngineReset = 0xfe,
  kTagInvalidTime = 0xff,
};

inline constexpr uint32_t kHiddenPid = 0;  // another user's, without CAP_SYS_ADMIN
inline constexpr uint32_t kKernelPid = 0xFFFFFFFF;

}  // namespace gpuledger::switch_trace
