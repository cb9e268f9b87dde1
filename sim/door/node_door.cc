// SPDX-License-Identifier: Apache-2.0
// The device nodes of the simulated node, through which the product reads the context-switch trace. Exported by the
// simulated libnvidia-ml, because real device nodes belong to no library.
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "door/door_driver.h"
#include "node.h"

namespace gpuledger::sim {
namespace {

using namespace switch_trace;

// The kernel moves records to the rings this often.
constexpr auto kDeliveryPeriod = std::chrono::milliseconds(33);

class NodeDoor {
 public:
  static NodeDoor& get() {
    static NodeDoor door;
    return door;
  }

  // Null: the driver is not loaded.
  std::shared_ptr<DoorDriver> driver() {
    Node& node = Node::get();
    std::lock_guard lock(node.mutex());
    if (!node.loaded()) return nullptr;
    if (!driver_) driver_ = make_driver(node);
    show_state(node);
    return driver_;
  }

  // After every call, because it may have started or ended a trace.
  void follow_traces() {
    const bool wanted = any_traced();
    std::lock_guard lock(thread_mutex_);
    if (wanted && !thread_.joinable() && !Node::get().clock().is_virtual()) {
      try {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
      } catch (const std::system_error&) {
        return;  // no thread can be made; the next call tries again, and the rings are empty until then
      }
    } else if (!wanted && thread_.joinable()) {
      thread_ = std::jthread();
    }
  }

  // Writes the switches up to now into the rings.
  void deliver() {
    Node& node = Node::get();
    std::lock_guard lock(node.mutex());
    if (!node.loaded() || !driver_) return;
    show_state(node);
    for (unsigned i = 0; i < node.scenario().gpus.size(); ++i) {
      const bool traced = driver_->traced(i);
      Gpu& gpu = node.gpu_now(i);
      if (traced && !node.lost(i)) {
        for (const EngineSwitch& change : gpu.take_switches()) driver_->put(i, record_of(node, change));
      }
      gpu.trace_switches(traced);
    }
  }

 private:
  static std::shared_ptr<DoorDriver> make_driver(Node& node) {
    std::vector<DoorDriver::Card> cards;
    const auto& gpus = node.scenario().gpus;
    for (unsigned i = 0; i < gpus.size(); ++i) {
      unsigned domain = 0, bus = 0, slot = 0;
      std::sscanf(gpus[i].pci_bus_id.c_str(), "%x:%x:%x", &domain, &bus, &slot);
      cards.push_back({i, domain, static_cast<uint8_t>(bus), static_cast<uint8_t>(slot)});
    }
    return std::make_shared<DoorDriver>(node.scenario().driver, std::move(cards),
                                        [&node](uint32_t) { return static_cast<uint64_t>(node.clock().wall_nanos()); });
  }

  // Passes on that a GPU is lost or has MIG instances.
  void show_state(Node& node) {
    for (unsigned i = 0; i < node.scenario().gpus.size(); ++i) {
      driver_->set_gpu_status(i, node.lost(i) ? uint32_t{kRmGpuLost} : uint32_t{kRmOk});
      const bool cut = !node.scenario().gpus[i].instances.empty();
      driver_->refuse_bind(i, cut ? uint32_t{kRmNotSupported} : uint32_t{kRmOk}, cut ? kBindOff : kBindNoReason);
    }
  }

  static SwitchRecord record_of(const Node& node, const EngineSwitch& change) {
    SwitchRecord record{};
    record.type = kRecordType;
    record.tag = change.start ? kTagStart : kTagEnd;
    record.context = record.pid = change.pid;
    record.gpu_instance = record.compute_instance = 255;
    record.timestamp = static_cast<uint64_t>(node.wall_micros(0)) * 1000 + static_cast<uint64_t>(change.nanos);
    return record;
  }

  bool any_traced() {
    Node& node = Node::get();
    std::lock_guard lock(node.mutex());
    if (!node.loaded() || !driver_) return false;
    for (unsigned i = 0; i < node.scenario().gpus.size(); ++i) {
      if (driver_->traced(i)) return true;
    }
    return false;
  }

  void run(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, kDeliveryPeriod, [&] { return stop.stop_requested(); })) deliver();
  }

  std::shared_ptr<DoorDriver> driver_;  // with the node's mutex
  std::mutex thread_mutex_;
  std::jthread thread_;
};

}  // namespace
}  // namespace gpuledger::sim

#define GPU_LEDGER_SIM_EXPORT extern "C" __attribute__((visibility("default")))
using gpuledger::sim::NodeDoor;

GPU_LEDGER_SIM_EXPORT int gpu_ledger_sim_door_open(const char* path) {
  const auto driver = NodeDoor::get().driver();
  return driver ? driver->open(path) : -ENODEV;
}

GPU_LEDGER_SIM_EXPORT int gpu_ledger_sim_door_ioctl(int fd, unsigned long request, void* argument) {
  const auto driver = NodeDoor::get().driver();
  if (!driver) return -ENODEV;
  const int answer = driver->ioctl(fd, request, argument);
  NodeDoor::get().deliver();
  NodeDoor::get().follow_traces();
  return answer;
}

GPU_LEDGER_SIM_EXPORT const void* gpu_ledger_sim_door_map(int fd, size_t length) {
  const auto driver = NodeDoor::get().driver();
  return driver ? driver->map(fd, length) : nullptr;
}

GPU_LEDGER_SIM_EXPORT void gpu_ledger_sim_door_unmap(const void* memory, size_t length) {
  if (const auto driver = NodeDoor::get().driver()) driver->unmap(memory, length);
}

GPU_LEDGER_SIM_EXPORT void gpu_ledger_sim_door_close(int fd) {
  if (const auto driver = NodeDoor::get().driver()) driver->close(fd);
  NodeDoor::get().follow_traces();
}
