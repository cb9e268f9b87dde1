// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/trace_session.h"

#include <cstdio>

namespace gpuledger::switch_trace {
namespace {

constexpr size_t kPage = 4096;
// The kernel needs this memory in one piece, so smaller sizes are tried too. The first holds 4.8 s of the highest rate
// seen on an H200, 3,400 records a second.
constexpr uint32_t kRecordCounts[] = {16384, 8192, 4096};

constexpr size_t whole_pages(size_t size) {
  return (size + kPage - 1) / kPage * kPage;
}

Error bind_refused(const Error& said, uint32_t reason) {
  switch (reason) {
    case kBindGpuTooOld: return {Code::kNotSupported, "this GPU is too old to trace context switches"};
    case kBindOffOnThisGpu: return {Code::kNotSupported, "the driver has the trace switched off on this GPU"};
    case kBindOff:
      return {Code::kNotSupported,
              "the driver does not allow the trace here: MIG, or a confidential GPU, is one cause"};
    case kBindNeedsAdmin: return {Code::kPermission, "the driver allows the trace to administrators only"};
    case kBindNeedsCapability:
      return {Code::kPermission, "this virtual GPU was not given the right to profile, which the trace needs"};
    default: return said;
  }
}

}  // namespace

Result<BusAddress> parse_bus_address(const std::string& text) {
  BusAddress address;
  char rest = 0;
  const int parts = std::sscanf(text.c_str(), "%x:%x:%x%c", &address.domain, &address.bus, &address.slot, &rest);
  if (parts < 3 || (parts == 4 && rest != '.')) {
    return Error{Code::kMalformed, "\"" + text + "\" is no address on the PCI bus"};
  }
  return address;
}

Result<std::unique_ptr<TraceSession>> TraceSession::open(std::shared_ptr<DriverDoor> door, const BusAddress& address) {
  GL_TRY(client, RmClient::open(std::move(door)));
  GL_TRY(branch, find_branch(client->driver_version()));
  std::unique_ptr<TraceSession> session(new TraceSession(std::move(client)));
  session->branch_ = branch;
  GL_TRY_STATUS(session->find_gpu(address));
  GL_TRY_STATUS(session->make_ring());
  return session;
}

TraceSession::~TraceSession() {
  stop();
}

Status TraceSession::find_gpu(const BusAddress& address) {
  GL_TRY(cards, client_->list_cards());
  const CardInfo* found = nullptr;
  for (const CardInfo& card : cards) {
    if (BusAddress{card.domain, card.bus, card.slot} == address) found = &card;
  }
  if (found == nullptr) return Error{Code::kNotFound, "the driver does not list this GPU"};
  GL_TRY_STATUS(client_->open_gpu(found->minor));
  GL_TRY_STATUS(client_->allocate("a client", 0, kClassClient, nullptr, 0));

  IdOfGpu id{};
  id.gpu_id = found->gpu_id;
  GL_TRY_STATUS(client_->control("the GPU's number", client_->handle(), kControlIdOfGpu, &id, sizeof id));
  DeviceParams device{};
  device.device_id = id.device_instance;
  device.client_share = client_->handle();
  GL_TRY(device_handle, client_->allocate("the GPU", client_->handle(), kClassDevice, &device, sizeof device));
  SubdeviceParams subdevice{id.subdevice_instance};
  GL_TRY(handle, client_->allocate("the GPU's part", device_handle, kClassSubdevice, &subdevice, sizeof subdevice));
  subdevice_ = handle;
  return ok_status();
}

Result<Handle> TraceSession::allocate_memory(const char* what, size_t size) {
  MemoryParams params{};
  params.attr = kMemoryCachedInHost;
  params.attr2 = kMemoryUserReadsOnly;
  params.size = size;
  return client_->allocate(what, client_->handle(), kClassMemory, &params, branch_.memory_params_size);
}

Status TraceSession::make_ring() {
  GL_TRY(header, allocate_memory("memory for the ring's header", kPage));
  header_memory_ = header;
  GL_TRY(header_view, client_->map("the ring's header", header_memory_, kPage));
  Status last = ok_status();
  for (const uint32_t count : kRecordCounts) {
    const size_t size = whole_pages(count * sizeof(SwitchRecord));
    const auto records = allocate_memory("memory for the ring", size);
    last = records.ok() ? ok_status() : Status(records.error());
    if (!records.ok()) continue;
    record_memory_ = *records;
    GL_TRY(record_view, client_->map("the ring", record_memory_, size));
    ring_ = std::make_unique<SwitchRing>(static_cast<const RingHeader*>(header_view),
                                         static_cast<const SwitchRecord*>(record_view), count);
    return ok_status();
  }
  return last;
}

Status TraceSession::make_event_buffer() {
  EventBufferParams params{};
  params.record_size = sizeof(SwitchRecord);
  params.record_count = ring_->size();
  params.subdevice = subdevice_;  // without it the kernel uses a null pointer
  params.header_memory = header_memory_;
  params.record_memory = record_memory_;
  GL_TRY(buffer, client_->allocate("an event buffer", client_->handle(), kClassEventBuffer, &params, sizeof params));
  event_buffer_ = buffer;
  return ok_status();
}

Status TraceSession::bind() {
  BindParams params{};
  params.event_buffer = event_buffer_;
  params.record_size = kBoundRecordSize;
  params.level_of_detail = 1;
  params.event_filter = ~0u;
  params.all_users = 1;
  const Status bound = client_->control("the trace", subdevice_, kControlBind, &params, sizeof params);
  return bound.ok() ? bound : Status(bind_refused(bound.error(), params.reason));
}

Status TraceSession::start() {
  if (event_buffer_ != 0) return ok_status();
  Status done = make_event_buffer();
  if (done.ok()) done = bind();
  // Skips records that another trace left in the memory.
  if (done.ok()) done = ring_->skip_all();
  if (done.ok()) {
    EnableParams params{};
    params.enable = 1;
    params.flags = kKeepOldest;
    done = client_->control("the trace's start", event_buffer_, kControlEnable, &params, sizeof params);
  }
  // A used ring still counts its old records as unread.
  if (done.ok() && ring_->next() != 0) done = give_back_records();
  if (!done.ok()) stop();
  return done;
}

// There is no control to unbind: freeing the event buffer does it and ends the trace's cost.
void TraceSession::stop() {
  if (event_buffer_ == 0) return;
  EnableParams params{};
  params.flags = kKeepOldest;
  (void)client_->control("the trace's end", event_buffer_, kControlEnable, &params, sizeof params);
  client_->free(client_->handle(), event_buffer_);
  event_buffer_ = 0;
}

Result<ClockPair> TraceSession::read_clocks(const Clock& clock) {
  uint64_t gpu = 0;
  const Nanoseconds before = clock.now().steady;
  const Status asked = client_->control("the GPU's time", subdevice_, kControlGpuTime, &gpu, sizeof gpu);
  const Nanoseconds after = clock.now().steady;
  if (!asked.ok()) return asked.error();
  // Later than 2116: nonsense, and differences of such times may overflow.
  constexpr uint64_t kLatest = INT64_MAX / 2;
  if (gpu > kLatest) return Error{Code::kUnavailable, "the GPU gives an impossible time"};
  return ClockPair{Nanoseconds(static_cast<int64_t>(gpu)), before + (after - before) / 2, after - before};
}

Status TraceSession::give_back_records() {
  MoveGetParams params{ring_->next(), 0};
  const Status moved = client_->control("room in the ring", event_buffer_, kControlMoveGet, &params, sizeof params);
  if (moved.ok()) ring_->note_given_back();
  return moved;
}

Status TraceSession::flush() {
  return client_->control("the GPU's buffered records", event_buffer_, kControlFlush, nullptr, 0);
}

}  // namespace gpuledger::switch_trace
