// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "identity/allocation_source.h"
#include "identity/pod_view.h"
#include "model/allocation.h"
#include "model/sample.h"

namespace gpuledger::identity {

// Which GPU of the batch each grant means. Left out: grants of GPUs that are not here, ids that nobody understands,
// and pods that have ended (kubelets before 1.34 go on listing those). pods may be null: then nobody is known to
// have ended, and what HAMi really gave cannot be told. Sorted, each once.
std::vector<Allocation> join_allocations(const GrantView& grants, const PodView* pods, const SampleBatch& batch);

// The one pod that has the GPU: all of it, or whichever replicas are given away. Without a container where several of
// the pod's have it. Empty where two pods share it, it is cut into instances or nobody's.
std::optional<Allocation> sole_pod(const std::vector<Allocation>& allocations, const GpuUuid& gpu);

// The one container that a whole GPU was given to; null where it is shared, cut into instances or nobody's.
const Allocation* sole_holder(const std::vector<Allocation>& allocations, const GpuUuid& gpu);

}  // namespace gpuledger::identity
