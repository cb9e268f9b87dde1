// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "identity/allocation_source.h"
#include "identity/pod_view.h"
#include "identity/slurm_jobs.h"
#include "model/allocation.h"
#include "model/sample.h"

namespace gpuledger::identity {

// The GPU of the batch behind each grant. Left out: grants of GPUs that are not in the batch, unknown ids, and pods
// that have ended (kubelets before 1.34 still list those). If pods is null, ended pods are not recognized and HAMi's
// real GPUs are not known. Sorted, without duplicates.
std::vector<Allocation> join_allocations(const GrantView& grants, const PodView* pods, const SampleBatch& batch);

// The GPUs of the batch that Slurm gave to jobs. Slurm numbers them by their device files, as the driver does. Left
// out: GPUs with MIG instances, which have numbers of Slurm's own. Sorted.
std::vector<Allocation> join_slurm_jobs(const std::map<std::string, SlurmJob>& jobs, const SampleBatch& batch);

// The one pod that has the GPU, or that instance of it (mig_uuid): all of it or all granted replicas. container is
// empty if several of its containers have it. Nothing if two pods share it, if it is free, or if it is not known which
// part of the GPU a pod has.
std::optional<Allocation> sole_pod(const std::vector<Allocation>& allocations, const GpuUuid& gpu,
                                   const Name& mig_uuid);

// The one container that has the whole GPU; null if the GPU is shared, has MIG instances or is free.
const Allocation* sole_holder(const std::vector<Allocation>& allocations, const GpuUuid& gpu);

}  // namespace gpuledger::identity
