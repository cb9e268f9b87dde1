// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

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

  unsigned gpu() {
    unsigned index = 0;
    reader.require("gpu");
    reader.whole("gpu", &index);
    if (!reader.failed() && index >= scenario->gpus.size()) reader.refuse("gpu", "is not there");
    return index;
  }

  void lost(Millis at) {
    Millis until = kForever;
    reader.seconds("until", &until);
    CallFault fault;
    fault.gpu = gpu();
    fault.code = 15;
    fault.from = at;
    fault.until = until;
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
    reader.seconds("until", &fault.until);
    if (reader.has("gpu")) fault.gpu = gpu();
    fault.code = static_cast<int>(code);
    scenario->faults.push_back(fault);
  }

  void reload(Millis at) {
    Millis lasts = 2000;
    reader.seconds("for", &lasts);
    Reload reload{at, at + lasts, {}};
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
    reader.whole("value", &change.value, 1ull << 52);
    scenario->field_changes.push_back(change);
  }

  void accounting(Millis at) {
    bool on = true;
    reader.flag("on", &on);
    scenario->accounting_changes.push_back({gpu(), at, on});
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
  if (what == "gpu_lost") {
    event.lost(at);
  } else if (what == "gpu_back") {
    event.back(at);
  } else if (what == "driver_reload") {
    event.reload(at);
  } else if (what == "counter_reset") {
    scenario->counter_resets.push_back({event.gpu(), at, true});
  } else if (what == "xid") {
    event.xid(at);
  } else if (what == "mig_create" || what == "mig_destroy") {
    event.mig(at, what == "mig_create");
  } else if (what == "error") {
    event.call_error(at);
  } else if (what == "field") {
    event.field(at);
  } else if (what == "accounting") {
    event.accounting(at);
  } else {
    event.reader.refuse("do",
                        "must be gpu_lost, gpu_back, driver_reload, counter_reset, xid, mig_create, mig_destroy, "
                        "error, field or accounting");
  }
  event.reader.finish();
}

}  // namespace gpuledger::sim
