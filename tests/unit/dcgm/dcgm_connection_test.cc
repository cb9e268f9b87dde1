// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_connection.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine_fixture.h"

namespace gpuledger::dcgm {
namespace {

using ::testing::HasSubstr;

class DcgmConnection : public EngineTest {
 protected:
  Result<std::unique_ptr<Connection>> open(const Where& where) {
    return Connection::open(library_ ? library_ : load(), where, book_);
  }
  static Where embedded() {
    Where where;
    where.embedded = true;
    return where;
  }
};

TEST_F(DcgmConnection, LibrariesOfOtherVersionsAreRefused) {
  const auto missing = load_library("/nowhere/libdcgm.so.4");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("--dcgm-library"));
  const auto old = load_library(sim_library("libdcgm.so.2"));
  ASSERT_FALSE(old.ok());
  EXPECT_THAT(old.error().message, HasSubstr("lacks dcgmGetGpuInstanceHierarchy, dcgmEntitiesGetLatestValues"));
  const auto driver = load_library(sim_driver());
  ASSERT_FALSE(driver.ok());
  EXPECT_THAT(driver.error().message, HasSubstr("it is not DCGM 3 or 4"));
  set("library_major", 5);
  const auto newer = load_library(sim_library());
  ASSERT_FALSE(newer.ok());
  EXPECT_THAT(newer.error().message, HasSubstr("is DCGM 5.3.9"));
  for (const auto* error : {&missing.error(), &old.error(), &newer.error()}) {
    EXPECT_EQ(error->message.find('\n'), std::string::npos);
  }
  set("library_major", 0);
  EXPECT_EQ(load("libdcgm.so.3")->version, "3.3.9");
}

TEST_F(DcgmConnection, VersionText) {
  VersionInfo info{};
  std::strcpy(info.text, "arch:x86_64;version:4.6.0;build:x");
  EXPECT_EQ(parse_version(info), "4.6.0");
  std::memset(info.text, 'x', sizeof info.text);  // no end
  EXPECT_EQ(parse_version(info), "");
}

// Each of DCGM's shares has a value of its own, also FP16 (1008), which we do not read ourselves.
TEST_F(DcgmConnection, EveryShareOfTheSimulatedMonitorsIsAShare) {
  node("gpus: [{model: A100-80GB}]\nprocesses: [{pid: 4101, gpus: 0, load: gemm}]\n");
  const auto connection = connect();
  const std::vector<FieldId> shares = {1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008};
  const Entity gpu{kEntityGpu, 0};
  const auto group = connection->create_group({gpu});
  const auto fields = connection->create_fields(shares);
  ASSERT_TRUE(group.ok() && fields.ok());
  ASSERT_EQ(connection->watch(*group, *fields, milliseconds(100), 60), kOk);
  pass(milliseconds(2000));
  size_t seen = 0;
  for (const auto& [entity, reading] : connection->read_latest({gpu}, shares, false)) {
    ++seen;
    EXPECT_GT(reading.number().value_or(0), 0.01) << reading.field;
    EXPECT_LE(reading.number().value_or(2), 1) << reading.field;
  }
  EXPECT_EQ(seen, shares.size());
}

// Nothing of ours may stay in somebody else's engine.
TEST_F(DcgmConnection, WatchesGoWithTheConnection) {
  auto connection = connect();
  auto reader = start(*connection, true);
  EXPECT_GT(seen("watched:156"), 0);
  reader.reset();
  connection.reset();
  EXPECT_EQ(seen("persist"), 0);
  EXPECT_EQ(seen("watched:156"), 0);
  // And the next connection asks for them again.
  connection = connect();
  reader = start(*connection, true);
  EXPECT_GT(seen("watched:156"), 0);
}

TEST_F(DcgmConnection, AnAbsentEngineIsWaitedForAsLongAsGiven) {
  set("dead", 1);
  Where where;
  where.timeout_ms = 7;
  const auto opened = open(where);
  // The engine wrote a handle all the same.
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("is nv-hostengine running?"));
  EXPECT_EQ(seen("timeout_ms"), 7);  // 0 would be 5 s
  EXPECT_EQ(book_.errors.at("unavailable"), 1u);
}

TEST_F(DcgmConnection, ASuccessThatLeadsNowhereIsNone) {
  set("dead_login", 1);
  EXPECT_FALSE(open({}).ok());
}

TEST_F(DcgmConnection, NoticesThatTheEngineDied) {
  auto connection = connect();
  auto reader = start(*connection, false);
  set("dead", 1);
  EXPECT_FALSE(reader->read({}).ok());
  EXPECT_TRUE(connection->gone());
}

TEST_F(DcgmConnection, ASocketThatIsNotThereOrNotForUs) {
  const auto absent = open({.address = "unix:/nowhere/engine"});
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.error().message, HasSubstr("/nowhere/engine: No such file"));
  EXPECT_EQ(seen("calls:dcgmConnect_v2"), 0);  // which would have taken its two seconds
  const std::string path = ::testing::TempDir() + "gpu-ledger-engine-" + std::to_string(getpid());
  std::ofstream(path) << "";
  EXPECT_TRUE(open({.address = path}).ok());
  EXPECT_EQ(seen("unix"), 1);
  EXPECT_TRUE(open({.address = "localhost:5555"}).ok());
  EXPECT_EQ(seen("unix"), 0);
  if (geteuid() != 0) {  // root may write anywhere
    chmod(path.c_str(), 0444);
    const auto refused = open({.address = path});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kPermission);
  }
  unlink(path.c_str());
}

TEST_F(DcgmConnection, AnEmbeddedEngineWritesNoLog) {
  auto first = open(embedded());
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(seen("log_to_file"), 0);
  EXPECT_EQ(seen("severity"), 0);
  // The second is answered with success, and handle 0.
  const auto second = open(embedded());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("already"));
  // The first is not harmed.
  EXPECT_EQ(start(**first, false) != nullptr, true);
}

TEST_F(DcgmConnection, AnEmbeddedEngineMustNotChangeTheProcess) {
  const auto folder = std::filesystem::current_path();
  for (const char* name : {"DCGM_HOME_DIR", "NVML_INJECTION_MODE"}) {
    setenv(name, "/", 1);
    const auto opened = open(embedded());
    unsetenv(name);
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.error().message, HasSubstr(name));
  }
  EXPECT_EQ(std::filesystem::current_path(), folder);
  setenv("DCGM_HOME_DIR", "/", 1);  // of no concern to who only connects
  EXPECT_TRUE(open({}).ok());
  unsetenv("DCGM_HOME_DIR");
}

}  // namespace
}  // namespace gpuledger::dcgm
