#include <set>
#include <string>

#include "expose/emit.h"

// What Kubernetes says, beside what the ledger booked.
namespace gpuledger::expose {
namespace {

LabelText place_labels(const View& view, const Allocation& allocation) {
  LabelText labels = view.labels();
  labels.add("gpu", allocation.gpu_index)
      .add("uuid", allocation.gpu.text)
      .add("mig_uuid", allocation.mig_uuid)
      .add("namespace", allocation.name_space)
      .add("pod", allocation.pod)
      .add("container", allocation.container);
  return labels;
}

// As kube-state-metrics writes them, so that the same joins work: "app.kubernetes.io/name" is
// "label_app_kubernetes_io_name".
std::string label_name(std::string_view kubernetes_name) {
  std::string name = "label_";
  for (const char c : kubernetes_name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name.push_back(plain ? c : '_');
  }
  return name;
}

}  // namespace

void emit_allocation_info(const View& view, TextWriter& out) {
  for (const AllocationAccount* account : view.allocations) {
    LabelText labels = place_labels(view, account->allocation);
    labels.add("resource", account->allocation.resource);
    if (account->allocation.replica) labels.add("replica", *account->allocation.replica);
    out.add(labels.take(), uint64_t{1});
  }
}

void emit_allocation_idle(const View& view, TextWriter& out) {
  std::string last;  // several replicas of one GPU in one container are one holder, and neighbours
  for (const AllocationAccount* account : view.allocations) {
    if (!account->idle_for) continue;
    std::string labels = place_labels(view, account->allocation).take();
    if (labels == last) continue;
    out.add(labels, *account->idle_for);
    last = std::move(labels);
  }
}

void emit_allocatable(const View& view, TextWriter& out) {
  if (view.cycle.identities->allocatable) out.add(view.labels().take(), *view.cycle.identities->allocatable);
}

void emit_pod_info(const View& view, TextWriter& out) {
  for (const PodFacts* facts : view.pods) {
    const PodFacts& pod = *facts;
    LabelText labels = view.labels();
    labels.add("namespace", pod.name_space)
        .add("pod", pod.pod)
        .add("pod_uid", pod.pod_uid)
        .add("name_source", pod.name_source);
    std::set<std::string> used;
    for (const auto& [name, value] : pod.labels) {
      // Two names can become one ("a.b" and "a-b"); a label that comes twice would cost the whole scrape.
      const std::string clean = label_name(name);
      if (used.insert(clean).second) labels.add(clean, value);
    }
    out.add(labels.take(), uint64_t{1});
  }
}

}  // namespace gpuledger::expose
