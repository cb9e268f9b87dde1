// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "yaml_reader.h"

namespace gpuledger::sim {
namespace {

void parse_duty(const YAML::Node& node, ParseFailure* failure, Duty* duty) {
  if (node.IsScalar()) {
    if (node.Scalar() == "idle") {
      duty->idle = true;
    } else if (node.Scalar() != "steady") {
      failure->report(node, "duty: must be steady, idle or a mapping with period and on");
    }
    return;
  }
  MapReader reader(node, "duty", failure);
  reader.require("period");
  reader.require("on");
  reader.seconds("period", &duty->period);
  reader.seconds("on", &duty->on);
  reader.seconds("phase", &duty->phase);
  reader.number("jitter", &duty->jitter, 0, 1);
  reader.finish();
  if (duty->period <= 0 || duty->on <= 0 || duty->on > duty->period) {
    failure->report(node, "duty: 'on' must be more than 0 and at most 'period'");
  }
}

void apply_preset(const WorkPreset& preset, const GpuModel& model, Load* load) {
  load->watts = preset.intensity * (model.limit_watts - model.idle_watts - model.resident_watts);
  load->busy = preset.busy;
  load->memory = preset.memory;
  load->encoder = preset.encoder;
  load->decoder = preset.decoder;
  load->gpm = preset.gpm;
}

void parse_load(const YAML::Node& node, const GpuModel& model, ParseFailure* failure, Load* load) {
  auto use_preset = [&](const YAML::Node& at, const std::string& key) {
    const WorkPreset* preset = find_work_preset(key);
    if (!preset) return failure->report(at, "unknown load '" + key + "', known are: " + work_preset_keys());
    apply_preset(*preset, model, load);
  };
  if (node.IsScalar()) return use_preset(node, node.Scalar());
  MapReader reader(node, "load", failure);
  std::string kind = "fp32";
  reader.text("kind", &kind);
  use_preset(reader.has("kind") ? reader.child("kind") : node, kind);
  reader.number("watts", &load->watts, 0, 5000);
  double percent = load->busy * 100;
  reader.number("busy", &percent, 0, 100);
  load->busy = percent / 100;
  percent = load->memory * 100;
  reader.number("memory", &percent, 0, 100);
  load->memory = percent / 100;
  percent = load->encoder * 100;
  reader.number("encoder", &percent, 0, 100);
  load->encoder = percent / 100;
  percent = load->decoder * 100;
  reader.number("decoder", &percent, 0, 100);
  load->decoder = percent / 100;
  reader.number("weight", &load->weight, 0.001, 1000);
  if (reader.has("duty")) parse_duty(reader.child("duty"), failure, &load->duty);
  reader.finish();
}

bool is_hex(const std::string& text, size_t length) {
  return text.size() == length && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

void parse_pod(MapReader* reader, OwnerSpec* owner) {
  owner->kind = OwnerKind::kPod;
  owner->name_space = "default";
  owner->container = "main";
  reader->text("namespace", &owner->name_space);
  reader->text("pod", &owner->pod);
  reader->text("container", &owner->container);
  owner->pod_uid = derived_uuid("pod/" + owner->name_space + "/" + owner->pod);
  reader->text("pod_uid", &owner->pod_uid);
  owner->container_id = derived_container_id(owner->pod_uid + "/" + owner->container);
  reader->text("container_id", &owner->container_id);
  const YAML::Node labels = reader->child_map("labels");
  if (labels.IsDefined()) {
    for (const auto& label : labels) {
      if (label.first.IsScalar() && label.second.IsScalar()) {
        owner->labels[label.first.Scalar()] = label.second.Scalar();
      }
    }
  }
  if (!is_hex(owner->container_id, 64)) reader->refuse("container_id", "must be 64 hexadecimal digits");
}

void parse_owner(const YAML::Node& node, ParseFailure* failure, OwnerSpec* owner) {
  if (node.IsScalar() && node.Scalar() == "none") return;
  MapReader reader(node, "owner", failure);
  if (reader.has("pod")) {
    parse_pod(&reader, owner);
  } else if (reader.has("docker")) {
    owner->kind = OwnerKind::kDocker;
    reader.text("docker", &owner->container);
    owner->container_id = derived_container_id("docker/" + owner->container);
    reader.text("id", &owner->container_id);
    if (!is_hex(owner->container_id, 64)) reader.refuse("id", "must be 64 hexadecimal digits");
  } else if (reader.has("slurm")) {
    owner->kind = OwnerKind::kSlurm;
    owner->step = "0";
    reader.text("slurm", &owner->job);
    reader.text("step", &owner->step);
    reader.text("account", &owner->account);
    reader.text("partition", &owner->partition);
  } else if (reader.has("systemd")) {
    owner->kind = OwnerKind::kSystemd;
    reader.text("systemd", &owner->unit);
  } else if (reader.has("cgroup")) {
    owner->kind = OwnerKind::kCgroup;
    reader.text("cgroup", &owner->cgroup);
    if (!owner->cgroup.starts_with('/')) reader.refuse("cgroup", "must begin with /");
  } else {
    failure->report(node, "owner: needs pod, docker, slurm, systemd or cgroup, or the word none");
  }
  reader.finish();
}

void parse_times(MapReader* reader, ProcessSpec* out) {
  reader->seconds("start", &out->start);
  reader->seconds("end", &out->end);
  if (out->end <= out->start) reader->refuse("end", "must be later than 'start'");
  const YAML::Node repeat = reader->child_map("repeat");
  if (!repeat.IsDefined()) return;
  MapReader times(repeat, "repeat", reader->failure());
  times.require("every");
  times.require("lives");
  times.seconds("every", &out->every);
  times.seconds("lives", &out->lives);
  times.whole("pid_step", &out->pid_step, 1000);
  times.finish();
  if (out->every <= 0 || out->lives <= 0) times.refuse("every", "and 'lives' must be more than 0");
  if (out->lives > out->every * 32) times.refuse("lives", "must be at most 32 times 'every'");
}

void parse_gpu_list(MapReader* reader, const std::vector<GpuSpec>& gpus, ProcessSpec* out) {
  reader->require("gpus");
  const YAML::Node list = reader->child("gpus");
  if (!list.IsDefined()) return;
  auto add = [&](const YAML::Node& item) {
    unsigned index = 0;
    if (!item.IsScalar() || !YAML::convert<unsigned>::decode(item, index) || index >= gpus.size()) {
      return reader->refuse("gpus", "names a GPU that is not there (there are " + std::to_string(gpus.size()) + ")");
    }
    if (!gpus[index].trace.empty()) return reader->refuse("gpus", "names a GPU that plays a trace");
    out->gpus.push_back(index);
  };
  if (list.IsSequence()) {
    for (const auto& item : list) add(item);
  } else {
    add(list);
  }
  if (out->gpus.empty()) reader->refuse("gpus", "must name at least one GPU");
}

void parse_kind(MapReader* reader, ProcessSpec* out) {
  std::string kind = "compute";
  reader->text("kind", &kind);
  out->compute = kind == "compute" || kind == "both";
  out->graphics = kind == "graphics" || kind == "both";
  if (!out->compute && !out->graphics) reader->refuse("kind", "must be compute, graphics or both");
  std::string mps;
  reader->text("mps", &mps);
  if (mps == "server") out->mps = MpsRole::kServer;
  if (mps == "client") out->mps = MpsRole::kClient;
  if (!mps.empty() && out->mps == MpsRole::kNone) reader->refuse("mps", "must be server or client");
}

void parse_instance(MapReader* reader, const std::vector<GpuSpec>& gpus, ProcessSpec* out) {
  const YAML::Node mig = reader->child_map("mig");
  const bool on_mig = !out->gpus.empty() && gpus[out->gpus[0]].mig;
  if (on_mig && (!mig.IsDefined() || out->gpus.size() != 1)) {
    return reader->failure()->report(reader->node(), "process: on a MIG GPU it needs 'mig' {gi, ci} and that one GPU");
  }
  if (!mig.IsDefined()) return;
  if (!on_mig) return reader->refuse("mig", "is for a GPU with MIG on");
  MapReader ids(mig, "mig", reader->failure());
  unsigned gi = 0, ci = 0;
  ids.require("gi");
  ids.whole("gi", &gi);
  ids.whole("ci", &ci);
  ids.finish();
  out->gpu_instance = gi;
  out->compute_instance = ci;
  for (const MigSpec& instance : gpus[out->gpus[0]].instances) {
    if (instance.gpu_instance == gi && instance.compute_instance == ci) return;
  }
  reader->refuse("mig", "names an instance that GPU never has");
}

}  // namespace

void parse_process(const YAML::Node& node, const std::vector<GpuSpec>& gpus, ParseFailure* failure, ProcessSpec* out) {
  MapReader reader(node, "process", failure);
  reader.require("pid");
  reader.whole("pid", &out->pid, 4194304);
  out->name = "process-" + std::to_string(out->pid);
  reader.text("name", &out->name);
  out->command = out->name;
  reader.text("command", &out->command);
  parse_gpu_list(&reader, gpus, out);
  parse_kind(&reader, out);
  parse_times(&reader, out);
  reader.bytes("memory", &out->memory);
  reader.whole("uid", &out->uid);
  reader.flag("real", &out->real);
  parse_instance(&reader, gpus, out);
  if (failure->failed()) return;
  const YAML::Node load = reader.child("load");
  if (load.IsDefined()) parse_load(load, gpus[out->gpus[0]].model, failure, &out->load);
  for (const unsigned gpu : out->gpus) {
    if (out->load.encoder > 0 && !gpus[gpu].model.encoder) {
      reader.refuse("load", "uses an encoder, and a " + gpus[gpu].model.key + " has none");
    }
  }
  const YAML::Node owner = reader.child("owner");
  if (owner.IsDefined()) parse_owner(owner, failure, &out->owner);
  reader.finish();
}

void parse_allocation(const YAML::Node& node, const std::vector<GpuSpec>& gpus, ParseFailure* failure,
                      AllocationSpec* out) {
  MapReader reader(node, "allocation", failure);
  reader.require("gpu");
  reader.require("owner");
  reader.whole("gpu", &out->gpu);
  if (out->gpu >= gpus.size() || gpus[out->gpu].mig) reader.refuse("gpu", "names no whole GPU of this node");
  reader.seconds("start", &out->start);
  reader.seconds("end", &out->end);
  if (out->end <= out->start) reader.refuse("end", "must be later than 'start'");
  if (!failure->failed()) parse_owner(reader.child("owner"), failure, &out->owner);
  if (!failure->failed() && out->owner.kind != OwnerKind::kPod) reader.refuse("owner", "must be a pod");
  reader.finish();
}

}  // namespace gpuledger::sim
