// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "sample/nvml/nvml_source.h"

namespace gpuledger::nvml {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

bool mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find(name) != std::string::npos;
}

TEST(Library, MissingFileNamesItAndSaysWhatToDo) {
  const Result<Library> library = load_library("/nowhere/libnvidia-ml.so.1");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, Code::kNotFound);
  EXPECT_THAT(library.error().message,
              AllOf(HasSubstr("/nowhere/libnvidia-ml.so.1"), HasSubstr("--nvml-library"), Not(HasSubstr("\n"))));
}

TEST(Library, ALibraryThatIsNotNvmlIsNamedWithItsHoles) {
  const Result<Library> library = load_library(NOT_NVML);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, Code::kMalformed);
  EXPECT_THAT(library.error().message, AllOf(HasSubstr(NOT_NVML), HasSubstr("nvmlInit_v2, nvmlShutdown")));
  EXPECT_FALSE(mapped("not_nvml"));
}

TEST(Library, OptionalSymbolsAreOptional) {
  const Result<Library> library = load_library(MINIMAL_NVML);
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_THAT(library->functions.missing_required(), IsEmpty());
  EXPECT_TRUE(library->functions.nvmlInit_v2);
  EXPECT_FALSE(library->functions.nvmlDeviceGetPowerUsage);
  EXPECT_THAT(library->functions.missing_optional(), ::testing::Contains("nvmlDeviceGetPowerUsage"));
}

TEST(Library, NothingStaysMappedAfterRelease) {
  const SystemClock clock;
  NvmlSourceOptions options;
  options.library = MINIMAL_NVML;
  options.least_answer_limit = std::chrono::minutes(1);
  const auto source = make_nvml_source(options, clock);
  EXPECT_FALSE(mapped("minimal_nvml"));
  const SampleBatch batch = source->sample(true);
  EXPECT_TRUE(batch.health.up) << batch.health.reason;
  EXPECT_EQ(batch.devices.at(0).description->uuid.text, "GPU-minimal");
  EXPECT_TRUE(mapped("minimal_nvml"));
  source->release();
  EXPECT_FALSE(mapped("minimal_nvml"));
  source->resume();
  EXPECT_TRUE(source->sample(true).health.up);
}

TEST(Source, ProbeOfAMissingLibraryIsOneLine) {
  const SystemClock clock;
  NvmlSourceOptions options;
  options.library = "/nowhere/libnvidia-ml.so.1";
  const Result<NvmlProbe> probe = make_nvml_source(options, clock)->probe();
  ASSERT_FALSE(probe);
  EXPECT_THAT(probe.error().message, HasSubstr("install the NVIDIA driver"));
}

}  // namespace
}  // namespace gpuledger::nvml
