// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/dynlib.h"
#include "sample/dcgm/dcgm_connection.h"
#include "sample/dcgm/dcgm_library.h"
#include "sample/dcgm/dcgm_reader.h"

namespace gpuledger::dcgm {

inline std::string sim_library(const std::string& name = "libdcgm.so.4") {
  return GPU_LEDGER_BINARY_DIR "/sim/dcgm/" + name;
}
inline std::string sim_driver() {
  return GPU_LEDGER_BINARY_DIR "/sim/libnvidia-ml.so.1";
}

inline void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// A simulated engine over a simulated driver, both through dlopen, and new for every test.
class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Which GPUs and processes there are; time 0 is the first look at them.
  void node(const std::string& scenario);
  void set(const char* setting, double value) { set_(setting, value); }
  double seen(const std::string& what) const { return seen_(what.c_str()); }

  std::shared_ptr<Library> load(const std::string& name = "libdcgm.so.4");
  std::unique_ptr<Connection> connect();
  // A reader that has looked once.
  std::unique_ptr<Reader> start(Connection& connection, bool whole);
  // Looks every 100 ms until the condition holds, or for 3 s.
  template <typename Condition>
  static View look_until(Reader& reader, const std::set<GpuUuid>& without, Condition condition) {
    View view;
    for (int i = 0; i < 30; ++i) {
      auto read = reader.read(without);
      if (read) view = std::move(*read);
      if (read && condition(view)) return view;
      sleep_ms(100);
    }
    ADD_FAILURE() << "never seen";
    return view;
  }

  SystemClock clock_;
  CallBook book_;
  std::shared_ptr<Library> library_;

 private:
  DynLib driver_;
  DynLib control_;
  void (*set_)(const char*, double) = nullptr;
  double (*seen_)(const char*) = nullptr;
  void (*reset_)() = nullptr;
  void (*reset_driver_)() = nullptr;
  std::string file_;
};

}  // namespace gpuledger::dcgm
