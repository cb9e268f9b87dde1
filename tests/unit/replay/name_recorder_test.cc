// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/name_recorder.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "attribute/books/kin.h"
#include "trace_text.h"

namespace gpuledger::app {
namespace {

using replay::Trace;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Answers from a map, and counts.
class FakeIdentities final : public IdentitySource {
 public:
  struct Book {
    IdentityMap map;
    int asked = 0;
  };
  explicit FakeIdentities(Book& book) : book_(book) {}
  std::shared_ptr<const IdentityMap> resolve(const SampleBatch& batch) override {
    ++book_.asked;
    auto map = std::make_shared<IdentityMap>();
    for (const ProcessSample& process : batch.devices.at(0).processes) {
      const auto known = book_.map.by_pid.find(process.pid);
      if (known != book_.map.by_pid.end()) map->by_pid.insert(*known);
    }
    return map;
  }

 private:
  Book& book_;
};

class NameRecorderTest : public ::testing::Test {
 protected:
  void open(RecordNames form) {
    auto opened = NameRecorder::open(std::make_unique<FakeIdentities>(book_), GpuUuid{"GPU-0"}, form);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    names_ = std::move(*opened);
  }
  ProcessIdentity& add(Pid pid, const char* name, OwnerKind kind) {
    ProcessIdentity& identity = book_.map.by_pid[pid];
    identity.key = {pid, 5};
    identity.name = name;
    identity.owner.kind = kind;
    return identity;
  }
  void add_pod(Pid pid, const char* name, const char* pod) {
    Owner& owner = add(pid, name, OwnerKind::kPod).owner;
    owner.name_space = "secret-namespace";
    owner.pod = pod;
    owner.container = "secret-container";
    owner.pod_uid = "secret-uid";
  }
  std::string record(const std::set<Pid>& pids, Nanoseconds t) {
    std::string out;
    names_->record(pids, {t + std::chrono::hours(1), t}, t, out);
    return out;
  }
  static std::vector<Trace::Process> parsed(const std::string& lines) {
    return replay::trace_of(replay::kDeviceLine + replay::energy_line(0, 1) + lines).processes;
  }
  static uint64_t kin_of(const Trace::Process& process) {
    ProcessIdentity identity;
    identity.name = process.name;
    identity.owner = process.owner;
    return attribute::kin_of(identity);
  }

  FakeIdentities::Book book_;
  std::unique_ptr<NameRecorder> names_;
};

TEST_F(NameRecorderTest, WritesALineWhenAProcessIsNewOrIsCalledSomethingElse) {
  open(RecordNames::kPlain);
  EXPECT_EQ(record({}, seconds(0)), "");
  add(7, "sh", OwnerKind::kHost).owner.unit = "a.service";
  const std::string first = record({7}, seconds(1));
  EXPECT_EQ(first,
            "{\"k\":\"process\",\"t\":1.0000,\"pid\":7,\"name\":\"sh\","
            "\"owner\":{\"kind\":\"host\",\"unit\":\"a.service\"}}\n");
  EXPECT_EQ(record({7}, seconds(2)), "");
  book_.map.by_pid[7].name = "train";
  EXPECT_EQ(record({7}, milliseconds(2100)), "") << "asked a moment ago";
  EXPECT_THAT(record({7}, seconds(3)), HasSubstr("\"train\""));
  add(8, "late", OwnerKind::kHost);
  EXPECT_THAT(parsed(record({7, 8}, milliseconds(3100))), SizeIs(1)) << "a new pid is asked for at once";
}

TEST_F(NameRecorderTest, IsAskedOnceASecondIfNobodyComesOrGoes) {
  open(RecordNames::kPlain);
  for (int i = 0; i < 30; ++i) (void)record({7}, milliseconds(100 * i));
  EXPECT_EQ(book_.asked, 3);
}

TEST_F(NameRecorderTest, WhoCouldNotBeReadHasNoLine) {
  open(RecordNames::kHashed);
  add(7, "unknown", OwnerKind::kUnknown).key.start_ticks = 0;
  EXPECT_EQ(record({7, 8}, seconds(1)), "");
}

TEST_F(NameRecorderTest, APidThatIsReusedIsNamedAgain) {
  open(RecordNames::kPlain);
  add(7, "one", OwnerKind::kHost);
  EXPECT_THAT(parsed(record({7}, seconds(1))), SizeIs(1));
  EXPECT_EQ(record({}, seconds(2)), "");
  EXPECT_THAT(parsed(record({7}, seconds(3))), SizeIs(1));
}

// Kin are the same processes, whether names are plain or hashed.
TEST_F(NameRecorderTest, HashedNamesMakeTheSameKinAndTellNothing) {
  add_pod(1, "python3", "trainer-7d4b9c6f5d-x2k9p");
  add_pod(2, "python3", "trainer-7d4b9c6f5d-abcde");
  add_pod(3, "nvidia-smi", "trainer-7d4b9c6f5d-abcde");
  add_pod(4, "python3", "other-0");
  add(5, "python3", OwnerKind::kHost);  // by hand: no kin
  add(6, "python3", OwnerKind::kHost);
  add(7, "python3", OwnerKind::kSlurmJob).owner.job = "70411";
  add(8, "python3", OwnerKind::kSlurmJob).owner.job = "70411";
  book_.map.by_pid[8].owner.step = "1";
  add(9, "python3", OwnerKind::kContainer).owner.container = "web";
  add(10, "python3", OwnerKind::kHost).owner.unit = "train.service";
  const std::set<Pid> all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  for (const RecordNames form : {RecordNames::kPlain, RecordNames::kHashed}) {
    open(form);
    const std::string lines = record(all, seconds(1));
    const auto processes = parsed(lines);
    ASSERT_THAT(processes, SizeIs(10));
    std::vector<uint64_t> kin;
    for (const Trace::Process& process : processes) kin.push_back(kin_of(process));
    EXPECT_EQ(kin[0], kin[1]);
    EXPECT_EQ(kin[4], 0u);
    EXPECT_EQ(kin[5], 0u);
    EXPECT_EQ(kin[6], kin[7]);
    const std::set<uint64_t> kinds(kin.begin(), kin.end());
    EXPECT_THAT(kinds, SizeIs(7)) << "two replicas, two steps, two of nobody, the rest each its own";
    EXPECT_THAT(lines, Not(HasSubstr("secret-uid")));
    if (form == RecordNames::kPlain) continue;
    for (const char* text : {"python3", "nvidia-smi", "trainer", "x2k9p", "other", "secret", "70411", "web", "train"}) {
      EXPECT_THAT(lines, Not(HasSubstr(text)));
    }
    EXPECT_THAT(lines, HasSubstr("\"slurm_job\"")) << "the kind of owner is told";
  }
}

TEST_F(NameRecorderTest, HashesOfTwoRecordingsCannotBeCompared) {
  add(7, "python3", OwnerKind::kHost).owner.unit = "a.service";
  open(RecordNames::kHashed);
  const auto one = parsed(record({7}, seconds(1)));
  open(RecordNames::kHashed);
  const auto two = parsed(record({7}, seconds(1)));
  EXPECT_EQ(one.at(0).name.str().size(), two.at(0).name.str().size());
  EXPECT_NE(one.at(0).name, two.at(0).name);
  EXPECT_NE(one.at(0).owner.unit, two.at(0).owner.unit);
}

}  // namespace
}  // namespace gpuledger::app
