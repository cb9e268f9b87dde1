// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/top/books.h"

namespace gpuledger::app::top {

inline Books::Gpu gpu(uint32_t index) {
  Books::Gpu gpu;
  gpu.index = index;
  gpu.uuid = "GPU-" + std::to_string(index);
  gpu.model = "NVIDIA H200";
  gpu.up = true;
  gpu.watts = 412.5;
  gpu.limit_watts = 700;
  gpu.busy = 0.5;
  gpu.memory_used = 64.0 * (1 << 30);
  gpu.memory_total = 128.0 * (1 << 30);
  gpu.celsius = 40;
  gpu.joules = 5000;
  return gpu;
}

inline Books::Process process(int64_t pid, double joules, uint32_t on = 0) {
  Books::Process process;
  process.gpu = on;
  process.gpu_uuid = "GPU-" + std::to_string(on);
  process.pid = pid;
  process.name = "p" + std::to_string(pid);
  process.owner_kind = "pod";
  process.owner = "team/job-" + std::to_string(pid);
  process.active = true;
  process.joules = process.shared_joules = joules;
  process.memory = pid == 12 ? 9e9 : 1e9;
  return process;
}

// Three processes on one GPU, each alone in its pod.
inline Books example() {
  Books books;
  books.at = 1000;
  books.cycle = 10;
  books.gpus.push_back(gpu(0));
  for (const int pid : {11, 12, 13}) {
    books.processes.push_back(process(pid, 1000 - pid));
    static_cast<Books::Account&>(books.owners.emplace_back()) = books.processes.back();
  }
  return books;
}

// What a process drew in the second is its pid in joules.
inline Books a_second_before(const Books& now) {
  Books books = now;
  books.at -= 1;
  books.cycle -= 1;
  for (size_t i = 0; i < books.processes.size(); ++i) {
    books.processes[i].joules -= static_cast<double>(books.processes[i].pid);
    books.processes[i].shared_joules = books.processes[i].joules;
    books.owners[i].joules = books.owners[i].shared_joules = books.processes[i].joules;
  }
  return books;
}

inline const Books kNow = example();
inline const Books kBefore = a_second_before(kNow);

}  // namespace gpuledger::app::top
