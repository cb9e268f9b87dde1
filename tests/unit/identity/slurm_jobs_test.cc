// SPDX-License-Identifier: Apache-2.0
#include "identity/slurm_jobs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "identity/resolver.h"
#include "resolver_batch.h"
#include "support/proc_tree.h"

namespace gpuledger::identity {
namespace {

constexpr const char* kFile =
    "user=ana\nuid=2001\naccount=physics\npartition=gpu\ngpus=0,2-3\nstart=1700000000\ncluster=loop\n";

TEST(ParseSlurmJob, AllThatIsKnown) {
  const SlurmJob job = parse_slurm_job(kFile);
  EXPECT_EQ(job.user, "ana");
  EXPECT_EQ(job.uid, "2001");
  EXPECT_EQ(job.facts.account, "physics");
  EXPECT_EQ(job.facts.partition, "gpu");
  EXPECT_EQ(job.facts.gpus, 3u);
  EXPECT_EQ(job.gpus, (std::vector<uint32_t>{0, 2, 3}));
  EXPECT_EQ(job.facts.started, 1700000000.0);
}

TEST(ParseSlurmJob, AUidIsWrittenAsAllOthersAre) {
  EXPECT_EQ(parse_slurm_job("uid=" + std::string(1000, '0') + "2001").uid, "2001");
}

TEST(ParseSlurmJob, GarbageIsLeftOut) {
  for (const char* text : {"", "\n\n=\n", "account=", "gpus=a\nstart=soon\nuid=-1", "start=-5\nstart=nan\ngpus=3-1",
                           "gpus=0-4000000000", "gpus=1,,2", "uid=12x"}) {
    const SlurmJob job = parse_slurm_job(text);
    EXPECT_TRUE(job.facts.empty()) << text;
    EXPECT_EQ(job.uid, "") << text;
  }
  const SlurmJob odd = parse_slurm_job("account=a\x1b[31m\xff" + std::string(500, 'x'));
  EXPECT_LE(odd.facts.account.str().size(), 64u);
  EXPECT_EQ(odd.facts.account.str().find('\x1b'), std::string::npos);
}

class SlurmJobsTest : public ::testing::Test {
 protected:
  SlurmJobsTest() { std::filesystem::create_directory(folder()); }
  std::string folder() const { return tree_.root() + "/jobs"; }
  void write(const std::string& job, const std::string& text, mode_t mode = 0644) {
    ASSERT_TRUE(write_file_atomically(folder() + "/" + job, text, mode).ok());
  }
  Code refusal(const std::string& job) const {
    const auto read = SlurmJobs(folder()).read(job);
    return read.ok() ? Code::kInternal : read.error().code;
  }

  testing::ProcTree tree_;
};

TEST_F(SlurmJobsTest, AFileThatOthersMayWriteIsNotBelieved) {
  write("7", kFile);
  EXPECT_EQ(SlurmJobs(folder()).read("7")->facts.account, "physics");
  write("8", kFile, 0664);
  EXPECT_EQ(refusal("8"), Code::kPermission);
  write("9", kFile, 0646);
  EXPECT_EQ(refusal("9"), Code::kPermission);
  ASSERT_EQ(::symlink("7", (folder() + "/10").c_str()), 0);
  EXPECT_EQ(refusal("10"), Code::kPermission) << "a link is nobody's word";
  if (::geteuid() == 0) {
    write("11", kFile);
    ASSERT_EQ(::chown((folder() + "/11").c_str(), 2001, 0), 0);
    EXPECT_EQ(refusal("11"), Code::kPermission);
  }
  ASSERT_EQ(::chmod(folder().c_str(), 01777), 0);
  EXPECT_EQ(refusal("7"), Code::kPermission) << "in such a folder anybody can put a file in its place";
}

TEST_F(SlurmJobsTest, NothingOutsideTheFolderAndNothingLarge) {
  write("7", kFile);
  for (const char* job : {"", "../jobs/7", ".", "7/", "8"}) EXPECT_EQ(refusal(job), Code::kNotFound) << job;
  EXPECT_EQ(SlurmJobs().read("7").error().code, Code::kNotFound) << "no folder";
  write("8", std::string(5000, 'a'));
  EXPECT_EQ(refusal("8"), Code::kMalformed);
}

TEST_F(SlurmJobsTest, AProcessOfTheJobGetsThem) {
  const std::string cgroup = "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n";
  tree_.add(5, "python3", 100, cgroup);
  tree_.write("5/status", "Name:\tpython3\nUid:\t2001\t2001\t2001\t2001\n");
  tree_.add(6, "helper", 100, cgroup);
  tree_.write("6/status", "Name:\thelper\nUid:\t2002\t2002\t2002\t2002\n");
  tree_.add(9, "other", 100);
  write("7", kFile);
  NodeDirectory directory;
  directory.slurm_jobs = SlurmJobs(folder());
  Resolver resolver(ProcReader(tree_.root()), std::move(directory));
  const auto map = resolver.resolve(batch_of({5, 6, 9}));
  EXPECT_EQ(map->by_pid.at(5).job.account, "physics");
  EXPECT_EQ(map->by_pid.at(5).user_name, "ana") << "who is in no passwd";
  EXPECT_EQ(map->by_pid.at(6).job.account, "physics");
  EXPECT_EQ(map->by_pid.at(6).user_name, "") << "the job's user is another one";
  EXPECT_TRUE(map->by_pid.at(9).job.empty());
}

// Slurm numbers GPUs by their device files.
TEST_F(SlurmJobsTest, AJobHoldsItsGpusAlsoWithoutAProcess) {
  write("7", "account=physics\nuser=ana\nuid=2001\ngpus=3\n");
  write("8", "account=film\n");
  write("9", "gpus=1\n", 0666);
  NodeDirectory directory;
  directory.slurm_jobs = SlurmJobs(folder());
  Resolver resolver(ProcReader(tree_.root()), std::move(directory));
  SampleBatch batch = batch_of({});
  const auto describe = [&](uint32_t minor) {
    auto description = std::make_shared<DeviceDescription>();
    description->uuid.text = "GPU-" + std::to_string(minor);
    description->index = minor - 1;
    description->minor = minor;
    return description;
  };
  batch.devices[0].description = describe(3);
  batch.devices.push_back(batch.devices[0]);
  batch.devices[1].description = describe(1);
  const auto map = resolver.resolve(batch);
  ASSERT_EQ(map->slurm_allocations.size(), 1u) << "a file that others may write is not believed";
  EXPECT_EQ(map->slurm_allocations[0].gpu.text, "GPU-3");
  EXPECT_EQ(map->slurm_allocations[0].gpu_index, 2u);
  EXPECT_EQ(map->slurm_allocations[0].job, "7");
  EXPECT_EQ(map->slurm_holders.at("7").facts.account, "physics");
  EXPECT_EQ(map->slurm_holders.at("7").user_name, "ana");
  EXPECT_TRUE(map->allocations.empty()) << "those of Kubernetes";
  // The epilog removes the file; it is noticed at the next search for processes.
  std::filesystem::remove(folder() + "/7");
  batch.processes_scanned = false;
  EXPECT_EQ(resolver.resolve(batch)->slurm_allocations.size(), 1u);
  batch.processes_scanned = true;
  EXPECT_TRUE(resolver.resolve(batch)->slurm_allocations.empty());
  // An instance of MIG has a number of Slurm's own.
  write("7", "gpus=3\n");
  auto sliced = describe(3);
  sliced->mig.emplace_back();
  batch.devices[0].description = sliced;
  EXPECT_TRUE(resolver.resolve(batch)->slurm_allocations.empty());
}

TEST_F(SlurmJobsTest, ARefusedFileIsCounted) {
  tree_.add(5, "python3", 100, "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n");
  write("7", kFile, 0666);
  NodeDirectory directory;
  directory.slurm_jobs = SlurmJobs(folder());
  Resolver resolver(ProcReader(tree_.root()), std::move(directory));
  EXPECT_TRUE(resolver.resolve(batch_of({5}))->by_pid.at(5).job.empty());
  EXPECT_EQ(resolver.health().at(0).errors.at("slurm_job_permission"), 1u);
}

}  // namespace
}  // namespace gpuledger::identity
