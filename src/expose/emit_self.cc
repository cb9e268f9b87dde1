#include <algorithm>
#include <iterator>
#include <string_view>

#include "expose/emit.h"

namespace gpuledger::expose {

void emit_build(const View& view, TextWriter& out) {
  out.add(view.labels().add("version", view.options.version).take(), uint64_t{1});
}

void emit_simulated(const View& view, TextWriter& out) {
  if (view.cycle.simulated) out.add(view.labels().take(), uint64_t{1});
}

void emit_source_up(const View& view, TextWriter& out) {
  for (const auto& health : view.sources) {
    out.add(view.labels().add("source", health.source).take(), uint64_t{health.up});
  }
}

void emit_source_errors(const View& view, TextWriter& out) {
  for (const auto& health : view.sources) {
    for (const auto& [code, count] : health.errors) {
      out.add(view.labels().add("source", health.source).add("code", code).take(), count);
    }
  }
}

void emit_sample_duration(const View& view, TextWriter& out) {
  out.add(view.labels().take(), view.cycle.cycle_durations);
}

void emit_call_duration(const View& view, TextWriter& out) {
  for (const auto& [call, durations] : view.cycle.batch.call_durations) {
    out.add(view.labels().add("call", call).take(), durations);
  }
}

void emit_snapshot_time(const View& view, TextWriter& out) {
  out.add(view.labels().take(), view.cycle.batch.at.wall);
}

void emit_without_owner(const View& view, TextWriter& out) {
  out.add(view.labels().take(), uint64_t{view.cycle.identities->without_owner});
}

void emit_pod_names_missing(const View& view, TextWriter& out) {
  static constexpr std::string_view kTellers[] = {"pods", "pods-api", "apiserver", "kubelet", "cri", "pod-resources"};
  bool any = false;
  bool told = false;
  bool undecided = false;
  for (const SourceHealth& health : view.sources) {
    if (std::find(std::begin(kTellers), std::end(kTellers), health.source) == std::end(kTellers)) continue;
    any = true;
    told |= health.up;
    undecided |= health.undecided;
  }
  if (any && (told || !undecided)) out.add(view.labels().take(), uint64_t{!told});
}

void emit_own_cpu(const View& view, TextWriter& out) {
  out.add(view.labels().take(), view.cycle.self.cpu_seconds);
}

void emit_own_start_time(const View& view, TextWriter& out) {
  out.add(view.labels().take(), view.cycle.self.start_time_seconds);
}

void emit_own_resident(const View& view, TextWriter& out) {
  out.add(view.labels().take(), view.cycle.self.resident_bytes);
}

void emit_own_virtual(const View& view, TextWriter& out) {
  out.add(view.labels().take(), view.cycle.self.virtual_bytes);
}

void emit_own_open_fds(const View& view, TextWriter& out) {
  out.add(view.labels().take(), view.cycle.self.open_fds);
}

void emit_own_max_fds(const View& view, TextWriter& out) {
  if (view.cycle.self.max_fds) out.add(view.labels().take(), *view.cycle.self.max_fds);
}

void emit_own_threads(const View& view, TextWriter& out) {
  out.add(view.labels().take(), view.cycle.self.threads);
}

void emit_folded(const View& view, TextWriter& out) {
  const FoldedAccounts& folded = view.cycle.ledger.folded;
  const auto add = [&](std::string_view account, std::string_view reason, uint64_t count) {
    out.add(view.labels().add("account", account).add("reason", reason).take(), count);
  };
  add("owner", "limit", folded.owners_over_limit);
  add("owner", "retention", folded.owners_over_time);
  add("process", "limit", folded.processes_over_limit);
}

void emit_series_left_out(const View& view, TextWriter& out) {
  for (const auto& [collector, count] : view.left_out) out.add(view.labels().add("collector", collector).take(), count);
}

void emit_series(const View& view, TextWriter& out) {
  out.add(view.labels().take(), uint64_t{out.samples() + 1});
}

}  // namespace gpuledger::expose
