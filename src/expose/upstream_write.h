// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "expose/expose.h"
#include "expose/text_writer.h"
#include "expose/upstream_parse.h"

namespace gpuledger::expose {

// Another exporter's metrics with the pods on its GPUs: pod_name, pod_namespace and container_name in lines of the
// older form, pod, namespace and container in those of the newer. A line with a pod is not changed.
// On a GPU that several pods share, power and memory used are split so that the sum is the exporter's value, and the
// other metrics are repeated for each pod. Energy is the ledger's: the same hardware counter, split into parts that
// never fall.
std::string write_upstream(const UpstreamText& text, const Cycle& cycle, const ExposeOptions& options, Format format);

}  // namespace gpuledger::expose
