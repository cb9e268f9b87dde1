// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/sample.h"
#include "sample/nvml/nvml_accounting.h"
#include "sample/nvml/nvml_calls.h"
#include "sample/nvml/nvml_calm.h"
#include "sample/nvml/nvml_glances.h"
#include "sample/nvml/nvml_gpm.h"
#include "sample/nvml/nvml_mig.h"
#include "sample/nvml/nvml_utilization.h"
#include "sample/nvml/nvml_vitals.h"

namespace gpuledger::nvml {

// One GPU, identified by its UUID: it outlives its handle, so a lost GPU or a reloaded driver keeps description and
// position.
class NvmlDevice {
 public:
  explicit NvmlDevice(GpuUuid uuid);

  const GpuUuid& uuid() const { return description_->uuid; }
  uint32_t index() const { return description_->index; }
  Device handle() const { return handle_; }
  bool answering() const { return answering_; }
  const std::string& trouble() const { return trouble_; }  // why it does not answer

  // A new handle of this driver session: earlier findings of unsupported calls are dropped.
  void attach(Session& session, Device handle, unsigned index, const std::string& driver);
  // Before unloading.
  void detach(const FunctionTable& functions, const std::string& why);

  // scan: also read rarely changing values and process lists.
  DeviceSample sample(Session& session, bool scan, Nanoseconds sample_interval, const Readings& wanted);
  // A glance between two samples; the next sample contains the readings. Returns the pids.
  std::vector<Pid> glance(Session& session);
  // The sample of a GPU that cannot be read.
  DeviceSample absent() const;

 private:
  template <typename Signature, typename... Arguments>
  bool read(Session& session, const Function<Signature>& function, Arguments... arguments);
  template <typename Signature>
  bool can(const Function<Signature>& function) const {
    return function && !unsupported_.contains(function.name);
  }
  void forget_capabilities(const FunctionTable& functions);
  void set_energy_source(EnergySource source);

  void read_gauges(Session& session, DeviceSample& out);
  void read_memory(Session& session, DeviceSample& out);
  std::vector<MigDevice> describe_state(Session& session, const DeviceSample& out);
  void read_lists(Session& session, const std::vector<MigDevice>& migs);
  void read_processes(Session& session, const std::vector<MigDevice>& migs, bool scan, Nanoseconds interval,
                      DeviceSample& out);
  bool glance_at_instances(Session& session);
  void note_glance(Session& session);
  void read_activity(Session& session, DeviceSample& out);
  void repeat_calm(Timestamp now, DeviceSample& out);
  void read_vitals(Session& session, const Readings& wanted, bool scan, DeviceSample& out);
  void add_short_lives(Session& session, Nanoseconds since_last, DeviceSample& out);
  bool knows(Pid pid) const;

  std::shared_ptr<const DeviceDescription> description_;
  Device handle_ = nullptr;
  bool answering_ = false;
  bool lost_ = false;       // this cycle: GPU said so
  bool succeeded_ = false;  // this cycle: any reading
  bool failed_ = false;     // this cycle: any reading
  std::string trouble_;
  std::set<std::string> unsupported_;  // calls that this GPU lacks
  UtilizationReader utilization_;
  GpmReader gpm_;
  AccountingReader accounting_;
  CalmWatch calm_;
  VitalsReader vitals_;
  Glances glances_;
  bool shared_ = false;                    // at the last glance
  bool refuses_glances_ = false;           // MIG: its lists need rights
  bool lists_instances_ = false;           // MIG: its lists have named a process
  std::optional<Nanoseconds> sampled_at_;  // steady
  std::vector<ProcessSample> listed_;      // as last read, by pid
  std::set<Pid> never_listed_;             // active, but not found by a scan; not searched again before the next
};

}  // namespace gpuledger::nvml
