// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "lives.h"
#include "mig_profile.h"
#include "yaml_reader.h"

namespace gpuledger::sim {

void parse_profile(MapReader* reader, MigSpec* out) {
  unsigned slices = 0, gigabytes = 0;
  int used = 0;
  if (sscanf(out->profile.c_str(), "%ug.%ugb%n", &slices, &gigabytes, &used) != 2 ||
      static_cast<size_t>(used) != out->profile.size() || slices < 1 || slices > 8 || gigabytes < 1) {
    return reader->refuse("profile", "must look like 1g.10gb");
  }
  out->slices = slices;
  out->memory_mb = instance_memory_mb(gigabytes);
}

namespace {

struct EventReader {
  MapReader reader;
  ParseFailure* failure;
  Scenario* scenario;
  bool commanded = false;  // by a test, while the node runs: it has no times of its own

  // A command ends when it is gone.
  void until(Millis* out) {
    if (!commanded) reader.seconds("until", out);
  }

  unsigned gpu() {
    unsigned index = 0;
    reader.require("gpu");
    reader.whole("gpu", &index);
    if (!reader.failed() && index >= scenario->gpus.size()) reader.refuse("gpu", "is not there");
    return index;
  }

  void lost(Millis at) {
    CallFault fault;
    fault.gpu = gpu();
    fault.code = 15;
    fault.from = at;
    until(&fault.until);
    scenario->faults.push_back(fault);
  }

  // Ends the latest loss of that GPU that has no end yet.
  void back(Millis at) {
    const unsigned index = gpu();
    for (CallFault& fault : scenario->faults) {
      if (fault.call.empty() && fault.gpu == index && fault.until == kForever) {
        fault.until = at;
        return;
      }
    }
    reader.refuse("gpu", "was not lost before it is back");
  }

  void mig(Millis at, bool create) {
    const unsigned index = gpu();
    if (reader.failed()) return;
    GpuSpec& spec = scenario->gpus[index];
    if (!spec.mig) return reader.refuse("gpu", "has no MIG on");
    MigSpec wanted;
    reader.require("gi");
    reader.whole("gi", &wanted.gpu_instance, 255);
    reader.whole("ci", &wanted.compute_instance, 255);
    if (create) {
      reader.require("profile");
      reader.text("profile", &wanted.profile);
      if (!reader.failed()) parse_profile(&reader, &wanted);
      wanted.uuid = "MIG-" + derived_uuid(spec.uuid + "/" + std::to_string(wanted.gpu_instance) + "/" +
                                          std::to_string(wanted.compute_instance) + "/" + std::to_string(at));
      wanted.from = at;
      spec.instances.push_back(wanted);
      return;
    }
    for (MigSpec& instance : spec.instances) {
      if (instance.gpu_instance == wanted.gpu_instance && instance.compute_instance == wanted.compute_instance &&
          instance.until == kForever) {
        instance.until = at;
        return;
      }
    }
    reader.refuse("gi", "names an instance that is not there");
  }

  void call_error(Millis at) {
    CallFault fault;
    fault.from = at;
    unsigned code = 999;
    reader.require("call");
    reader.text("call", &fault.call);
    reader.whole("code", &code, 999);
    until(&fault.until);
    if (reader.has("gpu")) fault.gpu = gpu();
    fault.code = static_cast<int>(code);
    scenario->faults.push_back(fault);
  }

  void call_answer(Millis at) {
    FalseAnswer answer;
    answer.from = at;
    reader.require("call");
    reader.require("value");
    reader.text("call", &answer.call);
    reader.whole("value", &answer.value, UINT64_MAX);
    until(&answer.until);
    if (reader.has("gpu")) answer.gpu = gpu();
    scenario->false_answers.push_back(answer);
  }

  void call_latency(const std::string& what, Millis at) {
    CallLatency latency;
    latency.from = at;
    latency.hangs = what == "hang";
    latency.told = what == "tell";
    reader.require("call");
    reader.text("call", &latency.call);
    if (what == "slow") {
      reader.require("ms");
      reader.number("ms", &latency.ms, 0, 60000);
    }
    until(&latency.until);
    if (reader.has("gpu")) latency.gpu = gpu();
    scenario->latencies.push_back(latency);
  }

  void reload(Millis at) {
    Millis lasts = 2000;
    if (!commanded) reader.seconds("for", &lasts);
    Reload reload{at, commanded ? kForever : at + lasts, {}};
    reader.text("driver", &reload.driver);
    scenario->reloads.push_back(std::move(reload));
  }

  void xid(Millis at) {
    XidEvent event;
    event.at = at;
    event.gpu = gpu();
    reader.require("xid");
    reader.whole("xid", &event.xid, 100000);
    scenario->xids.push_back(event);
  }

  void field(Millis at) {
    FieldChange change;
    change.at = at;
    change.gpu = gpu();
    reader.require("field");
    reader.require("value");
    reader.whole("field", &change.field, 1000);
    reader.whole("value", &change.value, UINT64_MAX);
    scenario->field_changes.push_back(change);
  }

  void accounting(Millis at) {
    bool on = true;
    reader.flag("on", &on);
    scenario->accounting_changes.push_back({gpu(), at, on});
  }

  // Its own times count from the command.
  void process_start(Millis at) {
    reader.require("process");
    const YAML::Node given = reader.child_map("process");
    if (reader.failed()) return;
    ProcessSpec process;
    parse_process(given, scenario->gpus, failure, &process);
    process.start += at;
    if (process.end < kForever) process.end += at;
    scenario->processes.push_back(std::move(process));
  }

  void process_exit(Millis at) {
    unsigned pid = 0;
    reader.require("pid");
    reader.whole("pid", &pid);
    bool lived = false;
    for (ProcessSpec& process : scenario->processes) {
      std::vector<Life> lives;
      append_lives(process, at, &lives);
      if (std::none_of(lives.begin(), lives.end(), [&](const Life& life) { return life.pid == pid; })) continue;
      process.end = at;
      lived = true;
    }
    if (!lived) reader.refuse("pid", "is of no process that lives");
  }

  // False: no such event.
  bool fault(const std::string& what, Millis at) {
    if (what == "gpu_lost") {
      lost(at);
    } else if (what == "driver_reload") {
      reload(at);
    } else if (what == "error") {
      call_error(at);
    } else if (what == "answer") {
      call_answer(at);
    } else if (what == "slow" || what == "hang") {
      call_latency(what, at);
    } else if (what == "counter_reset") {
      scenario->counter_resets.push_back({gpu(), at, true});
    } else if (what == "xid") {
      xid(at);
    } else if (what == "field") {
      field(at);
    } else if (what == "accounting") {
      accounting(at);
    } else {
      return false;
    }
    return true;
  }
};

}  // namespace

void parse_event(const YAML::Node& node, ParseFailure* failure, Scenario* scenario) {
  EventReader event{MapReader(node, "event", failure), failure, scenario};
  event.reader.require("do");
  event.reader.require("at");
  std::string what;
  Millis at = 0;
  event.reader.text("do", &what);
  event.reader.seconds("at", &at);
  if (event.reader.failed()) return;
  if (what == "gpu_back") {
    event.back(at);
  } else if (what == "mig_create" || what == "mig_destroy") {
    event.mig(at, what == "mig_create");
  } else if (!event.fault(what, at)) {
    event.reader.refuse("do",
                        "must be gpu_lost, gpu_back, driver_reload, counter_reset, xid, mig_create, mig_destroy, "
                        "error, answer, slow, hang, field or accounting");
  }
  event.reader.finish();
}

void parse_command(const YAML::Node& node, Millis at, ParseFailure* failure, Scenario* scenario) {
  EventReader event{MapReader(node, "command", failure), failure, scenario, true};
  event.reader.require("do");
  std::string what;
  event.reader.text("do", &what);
  if (event.reader.failed()) return;
  if (what == "tell") {
    event.call_latency(what, at);
  } else if (what == "process_start") {
    event.process_start(at);
  } else if (what == "process_exit") {
    event.process_exit(at);
  } else if (!event.fault(what, at)) {
    event.reader.refuse("do",
                        "must be gpu_lost, driver_reload, counter_reset, xid, error, answer, slow, hang, tell, field, "
                        "accounting, process_start or process_exit");
  }
  event.reader.finish();
}

}  // namespace gpuledger::sim
