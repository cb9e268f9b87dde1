// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/dynlib.h"
#include "sample/dcgm/dcgm_connection.h"
#include "sample/dcgm/dcgm_library.h"
#include "sample/dcgm/dcgm_reader.h"
#include "support/eventually.h"
#include "support/manual_clock.h"

namespace gpuledger::dcgm {

inline std::string sim_library(const std::string& name = "libdcgm.so.4") {
  return GPU_LEDGER_BINARY_DIR "/sim/dcgm/" + name;
}
inline std::string sim_driver() {
  return GPU_LEDGER_BINARY_DIR "/sim/libnvidia-ml.so.1";
}

using std::chrono::milliseconds;
using std::chrono::minutes;

// A simulated engine over a simulated driver, both through dlopen, and new for every test. One clock for all: the
// driver's, the engine's and ours stand still until the test lets time pass.
class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Which GPUs and processes there are. Before any time has passed.
  void node(const std::string& scenario);
  // The engine looks at what is watched as often as it should.
  void pass(Nanoseconds time);
  // Of the node: 0 at the start.
  Nanoseconds time() const { return clock_.now().wall - kBegin; }
  void set(const char* setting, double value) { set_(setting, value); }
  double seen(const std::string& what) const { return seen_(what.c_str()); }

  std::shared_ptr<Library> load(const std::string& name = "libdcgm.so.4");
  std::unique_ptr<Connection> connect();
  // A reader that has looked once.
  std::unique_ptr<Reader> start(Connection& connection, bool whole);
  // Looks every 100 ms until the condition holds, or for 10 s.
  template <typename Condition>
  View look_until(Reader& reader, const std::set<GpuUuid>& without, Condition condition) {
    View view;
    for (int i = 0; i < 100; ++i) {
      auto read = reader.read(without);
      if (read) view = std::move(*read);
      if (read && condition(view)) return view;
      pass(milliseconds(100));
    }
    ADD_FAILURE() << "never seen";
    return view;
  }

  ManualClock clock_{std::chrono::hours(1), kBegin};
  CallBook book_;
  std::shared_ptr<Library> library_;

 private:
  static constexpr Nanoseconds kBegin = std::chrono::seconds(1767225600);  // of the simulated driver's virtual clock
  void tell_time();

  DynLib driver_;
  DynLib control_;
  void (*set_)(const char*, double) = nullptr;
  double (*seen_)(const char*) = nullptr;
  void (*reset_)() = nullptr;
  void (*reset_driver_)() = nullptr;
  void (*set_driver_time_)(double) = nullptr;
  std::string file_;
};

}  // namespace gpuledger::dcgm
