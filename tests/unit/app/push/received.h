// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <messages/write_request.pb.h>
#include <snappy.h>

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

// A receiver's reading of a block, with snappy's and protobuf's own code.
namespace gpuledger::app {

using Labels = std::map<std::string, std::string>;
struct ReceivedSample {
  uint64_t bits = 0;
  int64_t at_ms = 0;
  double value() const { return std::bit_cast<double>(bits); }
};
using Received = std::map<Labels, ReceivedSample>;

inline Received read_request(const std::string& bytes) {
  test::WriteRequest request;
  EXPECT_TRUE(request.ParseFromString(bytes));
  Received received;
  for (const auto& series : request.timeseries()) {
    Labels labels;
    std::string last;
    for (const auto& label : series.labels()) {
      EXPECT_LT(last, label.name()) << "receivers want labels in order, each once";
      EXPECT_FALSE(label.value().empty()) << label.name();
      last = label.name();
      labels[label.name()] = label.value();
    }
    EXPECT_EQ(series.samples_size(), 1);
    const auto& sample = series.samples(0);
    const bool fresh =
        received.emplace(labels, ReceivedSample{std::bit_cast<uint64_t>(sample.value()), sample.timestamp()}).second;
    EXPECT_TRUE(fresh) << "twice: " << labels["__name__"];
  }
  return received;
}

inline Received read_block(const std::string& body) {
  std::string plain;
  EXPECT_TRUE(snappy::Uncompress(body.data(), body.size(), &plain));
  return read_request(plain);
}

}  // namespace gpuledger::app
