// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sample/dcgm/dcgm_abi.h"
#include "sample/nvml/nvml_library.h"

// A host engine as libdcgm shows it, in this process, on top of the simulated driver. It returns that driver's values
// in DCGM's formats, and those wrong answers of DCGM that a test switches on (README.md).
namespace gpuledger::sim_dcgm {

using dcgm::FieldId;
using Micros = int64_t;

struct Value {
  char type = 'i';
  dcgm::Return status = dcgm::kOk;
  Micros at = 0;
  int64_t i64 = 0;
  double dbl = 0;
  std::string text;
  std::vector<char> blob;
};

Value integer(uint64_t value);
Value number(double value);
Value words(std::string text);
Value refusal(char type, dcgm::Return status);
template <typename T>
Value bytes(const T& content) {
  Value value;
  value.type = 'b';
  const char* begin = reinterpret_cast<const char*>(&content);
  value.blob.assign(begin, begin + sizeof content);
  return value;
}

extern std::atomic<Micros> clock_was_set_by;
extern std::atomic<Micros> clock_stands_at;  // 0: it goes on
Micros wall_now();

struct MigEntity {
  unsigned gpu = 0;
  unsigned gpu_instance = 0;
};

// The driver as the engine sees it. Opened at the first use, and again after a reload.
class Driver {
 public:
  bool open();
  void close();
  size_t gpus() const { return devices_.size(); }
  nvml::Device device(unsigned gpu) const { return devices_[gpu]; }
  const nvml::FunctionTable& fn() const { return library_->functions; }
  // DCGM's code for the driver's result. Also notices that the driver is gone.
  dcgm::Return translate(nvml::Return result);
  nvml::Return set_accounting(unsigned gpu);
  std::vector<MigEntity> instances() const;  // position is the entity's id
  std::vector<uint64_t> new_xids(unsigned gpu);

 private:
  std::unique_ptr<nvml::Library> library_;
  std::vector<nvml::Device> devices_;
  nvml::EventSet events_ = nullptr;
  std::map<unsigned, std::vector<uint64_t>> xids_;
};

// The current value of a field of a GPU or an instance. A list has one value per entry.
std::vector<Value> read_field(Driver& driver, int kind, unsigned id, FieldId field);

class Engine {
 public:
  static Engine& get();

  std::mutex mutex;  // held for everything below
  Driver driver;
  std::map<std::string, double> settings;
  std::map<std::string, double> seen;  // what clients did, for tests

  bool on(const char* name);
  void read_control_file();

  struct Watch {
    Micros every = 0;
    Micros next = 0;
  };
  using Key = std::tuple<int, unsigned, FieldId>;  // kind, entity, field
  std::map<Key, Watch> watches;
  std::map<Key, std::deque<Value>> memory;
  std::map<dcgm::Group, std::vector<dcgm::Entity>> groups;
  std::map<dcgm::FieldGroup, std::vector<FieldId>> field_groups;
  std::set<std::pair<unsigned, std::pair<unsigned, uint64_t>>> accounted;  // GPU, pid, start: recorded already
  dcgm::Handle connection = 0;
  bool embedded = false;
  dcgm::Handle next_handle = 1;
  uintptr_t next_group = 10;

  std::vector<dcgm::Entity> members(dcgm::Group group);
  void update();
  void forget_client();

 private:
  void look_by_itself();
  void keep(const Key& key, std::vector<Value> values);
};

}  // namespace gpuledger::sim_dcgm
