// SPDX-License-Identifier: Apache-2.0
#include "engine_fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace gpuledger::dcgm {

void EngineTest::SetUp() {
  auto driver = DynLib::open(sim_driver());
  auto control = DynLib::open(sim_library());
  ASSERT_TRUE(driver && control);
  driver_ = std::move(*driver);
  control_ = std::move(*control);
  set_ = reinterpret_cast<decltype(set_)>(control_.symbol("dcgm_sim_set"));
  seen_ = reinterpret_cast<decltype(seen_)>(control_.symbol("dcgm_sim_seen"));
  reset_ = reinterpret_cast<decltype(reset_)>(control_.symbol("dcgm_sim_reset"));
  reset_driver_ = reinterpret_cast<decltype(reset_driver_)>(driver_.symbol("gpu_ledger_sim_reset"));
  set_driver_time_ = reinterpret_cast<decltype(set_driver_time_)>(driver_.symbol("gpu_ledger_sim_set_time"));
  ASSERT_TRUE(set_ && seen_ && reset_ && reset_driver_ && set_driver_time_);
  setenv("GPU_LEDGER_SIM_CLOCK", "virtual", 1);
  reset_();
  tell_time();
  node("gpus: [{model: A100-80GB}, {model: H200}]\nprocesses:\n  - {pid: 4101, gpus: 0, memory: 4GiB, load: gemm}\n");
}

void EngineTest::TearDown() {
  library_.reset();
  reset_();
  reset_driver_();
  if (!file_.empty()) unlink(file_.c_str());
}

void EngineTest::node(const std::string& scenario) {
  if (file_.empty()) {
    file_ = ::testing::TempDir() + "gpu-ledger-dcgm-XXXXXX";
    const int descriptor = mkstemp(file_.data());
    ASSERT_GE(descriptor, 0);
    close(descriptor);
  }
  std::ofstream(file_) << scenario;
  setenv("NVML_SIM_SCENARIO", file_.c_str(), 1);
  reset_driver_();
}

void EngineTest::tell_time() {
  set_driver_time_(std::chrono::duration<double>(time()).count());
  set("clock_stands_at_s", std::chrono::duration<double>(clock_.now().wall).count());
}

void EngineTest::pass(Nanoseconds time) {
  constexpr Nanoseconds kStep = milliseconds(50);  // half of what is between two lists
  for (; time > Nanoseconds(0); time -= kStep) {
    clock_.advance(std::min(time, kStep));
    tell_time();
  }
}

std::shared_ptr<Library> EngineTest::load(const std::string& name) {
  auto library = load_library(sim_library(name));
  EXPECT_TRUE(library.ok()) << library.error().message;
  library_ = *library;
  return library_;
}

std::unique_ptr<Connection> EngineTest::connect() {
  auto opened = Connection::open(library_ ? library_ : load(), {}, book_);
  EXPECT_TRUE(opened.ok());
  return opened ? std::move(*opened) : nullptr;
}

std::unique_ptr<Reader> EngineTest::start(Connection& connection, bool whole) {
  ReaderOptions options;
  options.whole = whole;
  options.interval = milliseconds(100);
  auto reader = std::make_unique<Reader>(connection, options, clock_);
  EXPECT_TRUE(reader->read({}).ok());
  return reader;
}

}  // namespace gpuledger::dcgm
