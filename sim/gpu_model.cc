// SPDX-License-Identifier: Apache-2.0
#include "gpu_model.h"

#include <iterator>

namespace gpuledger::sim {
namespace {

const GpuModel kModels[] = {
    {"P100", "Tesla P100-PCIE-16GB",
     4,      6,
     0,      2,
     16384,  250,
     26,     8,
     0,      false,
     false,  true,
     false,  false,
     56,     1328,
     405,    715,
     0x15F7},
    {"V100", "Tesla V100-SXM2-32GB",
     5,      7,
     0,      2,
     32768,  300,
     38,     16,
     0,      true,
     false,  true,
     false,  false,
     80,     1530,
     135,    877,
     0x1DB5, true,
     6},
    {"T4", "Tesla T4", 6, 7, 5, 2, 15360, 70, 9, 17, 0, true, false, true, false, false, 40, 1590, 300, 5001, 0x1EB8},
    {"A10", "NVIDIA A10", 7,    8,     6,    14, 23028, 150, 16,   34,    0,
     true,  false,        true, false, true, 72, 1695,  210, 6251, 0x2236},
    {"A100-40GB", "NVIDIA A100-SXM4-40GB",
     7,           8,
     0,           14,
     40960,       400,
     44,          14,
     7,           true,
     false,       false,
     false,       false,
     108,         1410,
     210,         1215,
     0x20B0,      true,
     12},
    {"A100-80GB", "NVIDIA A100-SXM4-80GB",
     7,           8,
     0,           14,
     81920,       400,
     52,          15,
     7,           true,
     false,       false,
     false,       false,
     108,         1410,
     210,         1593,
     0x20B2,      true,
     12},
    {"RTX-A6000", "NVIDIA RTX A6000",
     7,           8,
     6,           13,
     49140,       300,
     18,          48,
     0,           true,
     false,       true,
     true,        true,
     84,          1800,
     210,         8001,
     0x2230},
    {"L4", "NVIDIA L4", 8, 8, 9, 14, 23034, 72, 12, 16, 0, true, false, true, false, true, 58, 2040, 210, 6251, 0x27B8},
    {"L40S", "NVIDIA L40S", 8,    8,     9,    14,  46068, 350, 34,   46,    0,
     true,   false,         true, false, true, 142, 2520,  210, 9001, 0x26B9},
    {"RTX-4090", "NVIDIA GeForce RTX 4090",
     8,          8,
     9,          5,
     24564,      450,
     18,         36,
     0,          true,
     false,      true,
     true,       true,
     128,        2520,
     210,        10501,
     0x2684},
    {"H100", "NVIDIA H100 80GB HBM3",
     9,      9,
     0,      14,
     81559,  700,
     70,     48,
     7,      true,
     true,   false,
     false,  true,
     132,    1980,
     345,    2619,
     0x2330, true,
     18},
    {"H200", "NVIDIA H200", 9,     9,    0,   14,   143771, 700,  79,     45,   7, true,
     true,   false,         false, true, 132, 1980, 345,    3201, 0x2335, true, 0},
    {"B200", "NVIDIA B200", 10,    10,   0,   14,   183359, 1000, 140,    55,   7, true,
     true,   false,         false, true, 148, 1965, 120,    3996, 0x2901, true, 18},
};

//                          intensity busy mem enc  dec   gfx  sm  occ tensor dram fp32 fp64 fp16 int
const WorkPreset kPresets[] = {
    {"gemm", 0.983, 0.99, 0.40, 0.0, 0.0, {99, 96, 12, 88, 35, 1, 0, 1, 4}},
    {"train", 0.780, 0.95, 0.55, 0.0, 0.0, {95, 82, 30, 52, 48, 9, 0, 4, 12}},
    {"fp32", 0.618, 0.99, 0.01, 0.0, 0.0, {99, 98, 48, 0, 1, 96, 0, 0, 2}},
    {"copy", 0.566, 0.98, 1.00, 0.0, 0.0, {98, 92, 87, 0, 80, 0, 0, 0, 6}},
    {"decode", 0.550, 0.43, 0.76, 0.0, 0.0, {43, 36, 20, 9, 30, 4, 0, 2, 5}},
    {"serve", 0.600, 0.60, 0.50, 0.0, 0.0, {60, 52, 25, 30, 32, 5, 0, 3, 7}},
    {"spin", 0.000, 0.99, 0.00, 0.0, 0.0, {99, 1, 0, 0, 0, 0, 0, 0, 0}},
    {"video", 0.300, 0.25, 0.30, 0.6, 0.4, {25, 20, 15, 0, 15, 8, 0, 0, 8}},
    {"idle", 0.000, 0.00, 0.00, 0.0, 0.0, {0, 0, 0, 0, 0, 0, 0, 0, 0}},
};

}  // namespace

const GpuModel* find_gpu_model(std::string_view key) {
  for (const GpuModel& model : kModels) {
    if (model.key == key) return &model;
  }
  return nullptr;
}

uint64_t bar1_mib(const GpuModel& model) {
  constexpr unsigned kTuring = 6, kTesla = 2, kNvidia = 14;
  constexpr uint64_t kSmallWindow = 256;
  const bool whole_memory = (model.brand == kTesla || model.brand == kNvidia) && model.architecture != kTuring;
  uint64_t window = kSmallWindow;
  while (whole_memory && window < model.memory_mib) window *= 2;
  return window;
}

std::string vbios_version(const GpuModel& model) {
  switch (model.architecture) {
    case 4: return "86.00.52.00.02";
    case 5: return "88.00.98.00.01";
    case 6: return "90.04.96.00.01";
    case 7: return model.hbm ? "92.00.45.00.05" : "94.02.75.00.01";
    case 8: return "95.04.29.00.06";
    case 9: return "96.00.A5.00.1A";  // of the H200 that was measured
    default: return "97.00.82.00.18";
  }
}

const GpuModel* find_gpu_model_by_name(std::string_view name) {
  for (const GpuModel& model : kModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::string gpu_model_keys() {
  std::string keys;
  for (const GpuModel& model : kModels) keys += (keys.empty() ? "" : ", ") + model.key;
  return keys;
}

const WorkPreset* find_work_preset(std::string_view key) {
  for (const WorkPreset& preset : kPresets) {
    if (preset.key == key) return &preset;
  }
  return nullptr;
}

std::string work_preset_keys() {
  std::string keys;
  for (const WorkPreset& preset : kPresets) keys += (keys.empty() ? "" : ", ") + std::string(preset.key);
  return keys;
}

}  // namespace gpuledger::sim
