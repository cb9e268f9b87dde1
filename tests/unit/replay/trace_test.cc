// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/trace.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "sample/replay/trace_file.h"
#include "sample/replay/trace_lines.h"
#include "trace_text.h"

namespace gpuledger::replay {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string error_of(const std::string& text) {
  const auto trace = parse_trace(text, "x.jsonl");
  return trace.ok() ? "(no error)" : trace.error().message;
}

TEST(ParseTrace, TakesEveryKindOfLine) {
  const Trace trace =
      trace_of(kDeviceLine + energy_line(0.1, 5) + ticket_line(0.05, 7, 99) +
               "{\"k\":\"procs\",\"t\":0.2,\"p\":[[7,1000],[8,null]]}\n"
               "{\"k\":\"mps\",\"t\":0.2,\"p\":[[8,1000]]}\n"
               "{\"k\":\"state\",\"t\":0.2,\"gpu_util\":50,\"sm_mhz\":1980,\"temp_c\":40,\"memory_used\":30}\n"
               "{\"k\":\"gpm\",\"t\":0.21,\"gfx\":12.5,\"fp32\":null}\n"
               "\n"
               "{\"k\":\"power\",\"t\":1,\"mw\":[[0.90,80000],[0.92,81000]]}\n"
               "{\"k\":\"of another day\",\"t\":2.5}\n");
  EXPECT_EQ(trace.name, "NVIDIA H200");
  EXPECT_EQ(trace.limit_milliwatts, 700'000u);
  EXPECT_EQ(trace.length, milliseconds(2500));
  ASSERT_THAT(trace.counters, SizeIs(1));
  EXPECT_EQ(trace.counters[0].t, milliseconds(100));
  EXPECT_EQ(trace.counters[0].millijoules, 5u);
  EXPECT_EQ(trace.counters[0].milliwatts, 80'000u);
  ASSERT_THAT(trace.tickets, SizeIs(1));
  EXPECT_EQ(trace.tickets[0].t, milliseconds(50));
  EXPECT_EQ(trace.tickets[0].sm, 99u);
  ASSERT_THAT(trace.listings, SizeIs(1));
  ASSERT_THAT(trace.listings[0].compute, SizeIs(2));
  EXPECT_EQ(trace.listings[0].compute[0].memory, Bytes{1000});
  EXPECT_EQ(trace.listings[0].compute[1].memory, std::nullopt);
  EXPECT_EQ(trace.listings[0].mps.at(0).pid, 8u);
  EXPECT_EQ(trace.states.at(0).gpu_percent, 50u);
  EXPECT_EQ(trace.states.at(0).memory_mhz, std::nullopt);
  EXPECT_DOUBLE_EQ(trace.activities.at(0).activity.graphics->value, 0.125);
  EXPECT_EQ(trace.activities.at(0).activity.parts[Activity::kFp32], std::nullopt);
  EXPECT_EQ(trace.activities.at(0).activity.parts[Activity::kTensor], std::nullopt);
  ASSERT_THAT(trace.power, SizeIs(2));
  EXPECT_EQ(trace.power[1].milliwatts, 81'000u);
}

TEST(ParseTrace, SortsByTime) {
  const Trace trace = trace_of(kDeviceLine + energy_line(0.3, 3) + energy_line(0.1, 1) + energy_line(0.2, 2));
  std::vector<uint64_t> order;
  for (const auto& counter : trace.counters) order.push_back(counter.millijoules);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(ParseTrace, SaysWhichLineIsWrongAndWhy) {
  EXPECT_EQ(error_of(""), "x.jsonl: no line of k \"energy\" in this trace");
  EXPECT_EQ(error_of("hello\n"), "x.jsonl:1: not a line of a trace: it is not a JSON object");
  EXPECT_EQ(error_of("[1,2]\n"), "x.jsonl:1: not a line of a trace: it is not a JSON object");
  EXPECT_EQ(error_of(energy_line(0, 1)), "x.jsonl:1: a trace begins with a line of k \"device\"");
  EXPECT_EQ(error_of("{\"t\":0}"), "x.jsonl:1: not a line of a trace: 'k' not found");
  EXPECT_EQ(error_of("\n\n" + kDeviceLine + kDeviceLine),
            "x.jsonl:4: a trace has one line of k \"device\", this is another");
  const std::string where = "x.jsonl:2: not a line of a trace: ";
  const std::pair<const char*, const char*> cases[] = {
      {"{\"k\":\"energy\",\"t\":", "it is not a JSON object"},
      {"{\"k\":1,\"t\":0}", "'k' is not a text"},
      {"{\"k\":\"energy\",\"mj\":1}", "'t' not found"},
      {"{\"k\":\"energy\",\"t\":\"now\",\"mj\":1}", "'t' is not a time in seconds"},
      {"{\"k\":\"energy\",\"t\":1e300,\"mj\":1}", "'t' is not a time in seconds"},
      {"{\"k\":\"energy\",\"t\":1}", "'mj' not found"},
      {"{\"k\":\"energy\",\"t\":1,\"mj\":null}", "'mj' is not a number"},
      {"{\"k\":\"energy\",\"t\":1,\"mj\":-1}", "'mj' is not a whole number between 0 and 1000000000000000"},
      {"{\"k\":\"energy\",\"t\":1,\"mj\":1.5}", "'mj' is not a whole number between 0 and 1000000000000000"},
      {"{\"k\":\"util\",\"t\":1,\"ts\":1,\"pid\":99999999}", "'pid' is not a whole number between 0 and 4194304"},
      {"{\"k\":\"procs\",\"t\":1,\"p\":7}", "'p' is not a list"},
      {"{\"k\":\"procs\",\"t\":1,\"p\":[[7]]}", "'p' is not a list of pairs"},
      {"{\"k\":\"procs\",\"t\":1,\"p\":[[7,-5]]}", "'p' is not a whole number between 0 and 18446744073709551615"},
      {"{\"k\":\"gpm\",\"t\":1,\"sm\":-3}", "'sm' is not a percentage"},
      {"{\"k\":\"power\",\"t\":1,\"mw\":[[\"a\",1]]}", "'mw' is not a time in seconds"},
  };
  for (const auto& [line, why] : cases) EXPECT_EQ(error_of(kDeviceLine + line), where + why) << line;
}

TEST(ParseTrace, ReadsBackWhatIsWritten) {
  Trace device;
  device.name = "odd \"name\"\n";
  device.uuid = "GPU-1";
  device.driver = "580.1";
  device.memory_total = 5;
  std::string text;
  write_device(text, device);
  write_counter(text, {milliseconds(100), 123, 456}, milliseconds(3));
  write_counter(text, {milliseconds(200), 124, std::nullopt}, milliseconds(3));
  write_ticket(text, {milliseconds(150), 7, 99, 20, 3, 4}, milliseconds(200));
  write_listing(text, {milliseconds(200), {{7, Bytes{10}}, {8, std::nullopt}}, {{8, Bytes{1}}}});
  write_listing(text, {milliseconds(400), {}, {}});
  Trace::State state;
  state.t = milliseconds(200);
  state.sm_mhz = 1980;
  state.event_reasons = 1ull << 40;
  write_state(text, state);
  Activity activity;
  activity.graphics = Ratio{0.5};
  activity.parts[Activity::kFp64] = Ratio{0.25};
  write_busy(text, {milliseconds(300), activity});
  write_power(text, {{milliseconds(20), 100}, {milliseconds(40), 200}}, milliseconds(900));

  const Trace trace = trace_of(text);
  EXPECT_EQ(trace.name, device.name);
  EXPECT_EQ(trace.memory_total, 5u);
  EXPECT_EQ(trace.limit_milliwatts, std::nullopt);
  EXPECT_EQ(trace.length, milliseconds(900));
  ASSERT_THAT(trace.counters, SizeIs(2));
  EXPECT_EQ(trace.counters[0].milliwatts, 456u);
  EXPECT_EQ(trace.counters[1].milliwatts, std::nullopt);
  ASSERT_THAT(trace.tickets, SizeIs(1));
  EXPECT_EQ(trace.tickets[0].t, milliseconds(150));
  EXPECT_EQ(trace.tickets[0].decoder, 4u);
  ASSERT_THAT(trace.listings, SizeIs(2));
  EXPECT_EQ(trace.listings[0].compute.at(1).memory, std::nullopt);
  EXPECT_EQ(trace.listings[0].mps.at(0).pid, 8u);
  EXPECT_THAT(trace.listings[1].compute, IsEmpty());
  EXPECT_EQ(trace.states.at(0).sm_mhz, 1980u);
  EXPECT_EQ(trace.states.at(0).event_reasons, 1ull << 40);
  EXPECT_EQ(trace.states.at(0).celsius, std::nullopt);
  EXPECT_EQ(trace.activities.at(0).activity.parts[Activity::kFp64], Ratio{0.25});
  EXPECT_EQ(trace.activities.at(0).activity.parts[Activity::kSm], std::nullopt);
  ASSERT_THAT(trace.power, SizeIs(2));
  EXPECT_EQ(trace.power[1].t, milliseconds(40));
}

TEST(ParseTrace, TakesWhatProcessesAreCalled) {
  const Trace trace = trace_of(
      kDeviceLine + energy_line(0, 1) +
      "{\"k\":\"process\",\"t\":2,\"pid\":8,\"name\":\"b\",\"owner\":{\"kind\":\"host\",\"unit\":\"x.service\"}}\n"
      "{\"k\":\"process\",\"t\":1,\"pid\":7,\"name\":\"python3\",\"owner\":{\"kind\":\"pod\",\"namespace\":\"ml\","
      "\"pod\":\"train-0\",\"container\":\"main\",\"unit\":\"not of a pod\",\"of another day\":5}}\n"
      "{\"k\":\"process\",\"t\":3,\"pid\":9,\"name\":\"\",\"owner\":{\"kind\":\"of another day\",\"unit\":\"y\"}}\n");
  ASSERT_THAT(trace.processes, SizeIs(3));
  const Trace::Process& pod = trace.processes[0];
  EXPECT_EQ(pod.t, milliseconds(1000));
  EXPECT_EQ(pod.pid, 7u);
  EXPECT_EQ(pod.name, "python3");
  Owner owner;
  owner.kind = OwnerKind::kPod;
  owner.name_space = "ml";
  owner.pod = "train-0";
  owner.container = "main";
  EXPECT_EQ(pod.owner, owner);
  EXPECT_EQ(trace.processes[1].owner.kind, OwnerKind::kHost);
  EXPECT_EQ(trace.processes[1].owner.unit, "x.service");
  Owner unknown;
  unknown.kind = OwnerKind::kUnknown;
  EXPECT_EQ(trace.processes[2].owner, unknown);
}

TEST(ParseTrace, RefusesNamesThatCannotBe) {
  const std::string most(kMostNameBytes, 'x');
  const std::pair<std::string, const char*> cases[] = {
      {"\"name\":\"a\",\"owner\":{\"kind\":\"host\"}", "'pid' not found"},
      {"\"pid\":-7,\"name\":\"a\",\"owner\":{\"kind\":\"host\"}", "'pid' is not a whole number between 0 and 4194304"},
      {"\"pid\":7,\"owner\":{\"kind\":\"host\"}", "'name' not found"},
      {"\"pid\":7,\"name\":[],\"owner\":{\"kind\":\"host\"}", "'name' is not a text"},
      {"\"pid\":7,\"name\":\"x" + most + "\",\"owner\":{\"kind\":\"host\"}", "'name' is longer than 256 bytes"},
      {"\"pid\":7,\"name\":\"a\"", "'owner' not found"},
      {"\"pid\":7,\"name\":\"a\",\"owner\":\"me\"", "'owner' is not an object"},
      {"\"pid\":7,\"name\":\"a\",\"owner\":{}", "'kind' not found"},
      {"\"pid\":7,\"name\":\"a\",\"owner\":{\"kind\":\"host\",\"unit\":5}", "'unit' is not a text"},
      {"\"pid\":7,\"name\":\"a\",\"owner\":{\"kind\":\"slurm_job\",\"job\":\"x" + most + "\"}",
       "'job' is longer than 256 bytes"},
  };
  for (const auto& [fields, why] : cases) {
    EXPECT_EQ(error_of(kDeviceLine + "{\"k\":\"process\",\"t\":1," + fields + "}"),
              std::string("x.jsonl:2: not a line of a trace: ") + why)
        << fields;
  }
}

TEST(ParseTrace, ReadsBackNamesAsTheyAreWritten) {
  Trace::Process process;
  process.t = milliseconds(300);
  process.pid = 7;
  process.name = "odd \"name\"";
  for (const OwnerKindRow& row : kOwnerKinds) {
    process.owner = {};
    process.owner.kind = row.kind;
    for (const KinField& field : row.kin) process.owner.*field.value = "a \\ b";
    std::string text = kDeviceLine + energy_line(0, 1);
    write_process(text, process);
    const Trace trace = trace_of(text);
    ASSERT_THAT(trace.processes, SizeIs(1));
    EXPECT_EQ(trace.processes[0].t, process.t);
    EXPECT_EQ(trace.processes[0].name, process.name);
    EXPECT_EQ(trace.processes[0].owner, process.owner) << row.word;
  }
}

TEST(ParseTrace, WritesOnlyWhatMakesKinAndNothingLong) {
  Trace::Process process;
  process.pid = 7;
  process.name = std::string(5000, 'n');
  process.owner.unit = std::string(5000, 'u');
  process.owner.user = "1000";
  std::string text;
  write_process(text, process);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("1000")));
  const Trace trace = trace_of(kDeviceLine + energy_line(0, 1) + text);
  EXPECT_EQ(trace.processes.at(0).name, std::string(kMostNameBytes, 'n'));
  EXPECT_EQ(trace.processes.at(0).owner.unit, std::string(kMostNameBytes, 'u'));
}

std::vector<int64_t> ends_of(const Trace& trace) {
  std::vector<int64_t> ends;
  for (const Trace::Resident& resident : trace.residency) ends.push_back(resident.t / milliseconds(1));
  return ends;
}

TEST(ParseTrace, TakesWhoWasOnTheEngine) {
  const Trace trace = trace_of(kDeviceLine + energy_line(0, 1) +
                               "{\"k\":\"residency\",\"t\":0.1,\"w\":0.02,\"p\":"
                               "[[7,[0.0,5.5,20.0,20.0,1.25]],[8,[0.0,14.0,0.0,0.0,18]]]}\n");
  EXPECT_THAT(ends_of(trace), ElementsAre(40, 60, 80, 100));  // who had the first 20 ms is not known
  const ResidencyBin& shared = trace.residency[0].bin;
  EXPECT_EQ(shared.width, milliseconds(20));
  EXPECT_THAT(shared.residents, ElementsAre(Residency{7, std::chrono::microseconds(5500), std::nullopt},
                                            Residency{8, milliseconds(14), std::nullopt}));
  EXPECT_THAT(trace.residency[1].bin.residents, ElementsAre(Residency{7, milliseconds(20), std::nullopt}));
}

TEST(ParseTrace, TakesWhatWasContendedAndWhatIsKnown) {
  const Trace trace = trace_of(kDeviceLine + energy_line(0, 1) +
                               "{\"k\":\"residency\",\"t\":0.1,\"w\":0.02,\"p\":[[7,[0,5,6]]],\"c\":[[7,[0,4,0]]],"
                               "\"known\":[1,1,0]}\n"
                               "{\"k\":\"residency\",\"t\":0.2,\"w\":0.02,\"p\":[],\"known\":[1,0]}\n");
  EXPECT_THAT(ends_of(trace), ElementsAre(60, 80, 180));
  EXPECT_THAT(trace.residency[0].bin.residents, IsEmpty());
  EXPECT_THAT(trace.residency[1].bin.residents, ElementsAre(Residency{7, milliseconds(5), milliseconds(4)}));
}

TEST(ParseTrace, RefusesResidencyThatCannotBe) {
  const std::pair<const char*, const char*> cases[] = {
      {"\"p\":[]", "'w' not found"},
      {"\"w\":0,\"p\":[]", "'w' is not a width in seconds"},
      {"\"w\":0.02", "'p' not found"},
      {"\"w\":0.02,\"p\":[[7,3]]", "'p' is not a list of lists by pid"},
      {"\"w\":0.02,\"p\":[[7,[1]],[7,[1]]]", "'p' is not a list of lists by pid"},
      {"\"w\":0.02,\"p\":[[7,[1]],[8,[1,2]]]", "'p' has lists of different lengths"},
      {"\"w\":0.02,\"p\":[[7,[21]]]", "'p' has a time that is not within 'w'"},
      {"\"w\":0.02,\"p\":[[7,[-1]]]", "'p' has a time that is not within 'w'"},
      {"\"w\":0.02,\"p\":[[7,[1]]],\"c\":[[7,[1,2]]]", "'c' has lists of different lengths"},
      {"\"w\":0.02,\"p\":[[7,[1]]],\"known\":[1,1]", "'known' is not as long as the lists in 'p'"},
      {"\"w\":0.02,\"p\":[[7,[1]]],\"known\":[2]", "'known' is not a whole number between 0 and 1"},
  };
  for (const auto& [fields, why] : cases) {
    EXPECT_EQ(error_of(kDeviceLine + "{\"k\":\"residency\",\"t\":1," + fields + "}"),
              std::string("x.jsonl:2: not a line of a trace: ") + why)
        << fields;
  }
}

TEST(ParseTrace, ReadsBackResidencyAsItIsWritten) {
  std::vector<ResidencyBin> bins;
  for (int i = 1; i <= 12; ++i) {
    ResidencyBin bin{milliseconds(20 * i), milliseconds(20), {{7, milliseconds(i), milliseconds(i / 2)}}};
    if (i % 3 == 0) bin.residents.push_back({8, milliseconds(2), milliseconds(0)});
    if (i == 10) bin.residents.clear();  // nobody, and that is known
    if (i == 4 || i == 8) continue;      // not known
    bins.push_back(bin);
  }
  std::string text = kDeviceLine + energy_line(0, 1);
  write_residency(text, bins);
  const Trace trace = trace_of(text);
  std::vector<ResidencyBin> read;
  for (const Trace::Resident& resident : trace.residency) read.push_back(resident.bin);
  EXPECT_EQ(read, bins);
}

class TraceFiles : public ::testing::Test {
 protected:
  TraceFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gl_replay_XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~TraceFiles() override { std::filesystem::remove_all(folder_); }

  size_t files() const {
    const std::filesystem::directory_iterator entries(folder_);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }
  void write(const std::string& name) {
    auto file = TraceFile::create(folder_ + name);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_TRUE(file->append(kDeviceLine).ok());
    EXPECT_FALSE(std::filesystem::exists(folder_ + name));
    ASSERT_TRUE(file->append(energy_line(0, 1)).ok());
    ASSERT_TRUE(file->commit().ok());
  }
  static std::string first_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(2, '\0');
    file.read(bytes.data(), 2);
    return bytes;
  }
  std::string error_of_reading(const std::string& path) {
    const auto trace = read_trace(path);
    return trace.ok() ? "(no error)" : trace.error().message;
  }

  std::string folder_;
};

TEST_F(TraceFiles, ArePlainOrGzippedByTheirName) {
  write("/a.jsonl");
  write("/a.jsonl.gz");
  EXPECT_EQ(first_bytes(folder_ + "/a.jsonl"), "{\"");
  EXPECT_EQ(first_bytes(folder_ + "/a.jsonl.gz"), "\x1f\x8b");
  EXPECT_EQ(files(), 2u);
  for (const char* name : {"/a.jsonl", "/a.jsonl.gz"}) {
    const auto trace = read_trace(folder_ + name);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace->counters.size(), 1u);
  }
}

TEST_F(TraceFiles, LeaveNothingWithoutCommit) {
  {
    auto file = TraceFile::create(folder_ + "/a.jsonl.gz");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->append(kDeviceLine).ok());
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(TraceFiles, CannotBeWhereNoFileCanBe) {
  for (const std::string& path : {folder_, folder_ + "/", folder_ + "/missing/a.jsonl"}) {
    const auto file = TraceFile::create(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_THAT(file.error().message, HasSubstr("cannot write " + path));
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(TraceFiles, ReplaceOnlyARegularFile) {
  const std::string fifo = folder_ + "/fifo";
  const std::string link = folder_ + "/link";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink(folder_ + "/nowhere", link);
  for (const std::string& path : {fifo, link}) {
    const auto file = TraceFile::create(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_THAT(file.error().message, HasSubstr("cannot write " + path + ": "));
  }
  // One that came while the recording ran.
  auto file = TraceFile::create(folder_ + "/a.jsonl");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append(kDeviceLine).ok());
  ASSERT_EQ(::mkfifo((folder_ + "/a.jsonl").c_str(), 0600), 0);
  const Status committed = file->commit();
  ASSERT_FALSE(committed.ok());
  EXPECT_THAT(committed.error().message, HasSubstr("not a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(folder_ + "/a.jsonl"));
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_EQ(files(), 3u) << "no temporary file is left";
}

TEST_F(TraceFiles, OfKilledRecordingsAreRemovedAndLivingOnesAreNot) {
  std::ofstream(folder_ + "/.a.jsonl.abc123") << "half";
  const auto living = TraceFile::create(folder_ + "/a.jsonl");
  ASSERT_TRUE(living.ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/.a.jsonl.abc123"));
  const auto second = TraceFile::create(folder_ + "/a.jsonl");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(files(), 2u);
}

// It names the processes of all users.
TEST_F(TraceFiles, AreForTheirOwnerOnly) {
  write("/a.jsonl");
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(folder_ + "/a.jsonl").permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(TraceFiles, ThatCannotBeReadAreNamed) {
  EXPECT_EQ(error_of_reading(folder_ + "/none.jsonl"), folder_ + "/none.jsonl: No such file or directory");
  EXPECT_THAT(error_of_reading(folder_), HasSubstr(folder_ + ": cannot be unpacked: Is a directory"));

  std::ifstream whole(recorded("solo_gemm"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  ASSERT_GT(bytes.size(), 1000u);
  const std::string cut = folder_ + "/cut.jsonl.gz";
  for (const size_t length : {bytes.size() / 2, bytes.size() - 4}) {
    std::ofstream(cut, std::ios::binary) << bytes.substr(0, length);
    EXPECT_THAT(error_of_reading(cut), HasSubstr(cut + ": cannot be unpacked: ")) << length;
  }
  std::string spoilt = bytes;
  spoilt[bytes.size() / 2] = static_cast<char>(~spoilt[bytes.size() / 2]);
  std::ofstream(cut, std::ios::binary) << spoilt;
  EXPECT_NE(error_of_reading(cut), "(no error)");
}

}  // namespace
}  // namespace gpuledger::replay
