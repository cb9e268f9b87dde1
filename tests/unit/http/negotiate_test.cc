// SPDX-License-Identifier: Apache-2.0
#include "http/negotiate.h"

#include <gtest/gtest.h>

namespace gpuledger::http {
namespace {

struct FormatCase {
  const char* accept;
  Format expected;
};

TEST(NegotiateFormat, FollowsTheAcceptHeader) {
  const FormatCase cases[] = {
      {"", Format::kText},
      {"*/*", Format::kText},
      {"text/plain", Format::kText},
      {"text/*", Format::kText},
      {"TEXT/PLAIN; Version=0.0.4", Format::kText},
      {"application/openmetrics-text", Format::kOpenMetrics},
      {"application/openmetrics-text; version=1.0.0; charset=utf-8", Format::kOpenMetrics},
      {"application/openmetrics-text; version=\"1.0.0\"", Format::kOpenMetrics},
      {"application/openmetrics-text;version=0.0.1", Format::kOpenMetrics},
      {"application/openmetrics-text, */*", Format::kOpenMetrics},
      {"*/*, application/openmetrics-text", Format::kOpenMetrics},
      {"application/*", Format::kOpenMetrics},
      {"application/*, text/*", Format::kOpenMetrics},
      {"text/*, application/*", Format::kText},
      {"application/openmetrics-text;q=0.5, text/plain;q=0.6", Format::kText},
      {"application/openmetrics-text;q=0.7, text/plain;q=0.6", Format::kOpenMetrics},
      {"text/plain, application/openmetrics-text", Format::kText},
      {"application/openmetrics-text, text/plain", Format::kOpenMetrics},
      // The named type decides, not the wildcard beside it.
      {"text/plain;q=0, */*", Format::kOpenMetrics},
      {"application/openmetrics-text;q=0, */*", Format::kText},
      {"application/openmetrics-text; q=bad", Format::kOpenMetrics},
      {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Format::kText},
      {",, ;q=1 ,text/plain", Format::kText},
      // Who takes nothing that we write gets the text.
      {"application/json", Format::kText},
      {"text/html", Format::kText},
      {"text/plain;q=0", Format::kText},
      {"*/*;q=0", Format::kText},
      // Formats of these versions are not the ones we write.
      {"text/plain;version=1.0.0, application/openmetrics-text;q=0.1", Format::kOpenMetrics},
      {"application/openmetrics-text;version=2.0.0", Format::kText},
  };
  for (const FormatCase& each : cases) EXPECT_EQ(negotiate_format(each.accept), each.expected) << each.accept;
}

TEST(NegotiateFormat, UnderstandsRealPrometheus) {
  const char* v2_42 =
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
      "text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
  const char* v3 =
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
      "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
      "text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
  const char* v3_protobuf =
      "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
      "text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
  const char* v3_text_first =
      "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,"
      "application/openmetrics-text;version=1.0.0;q=0.4,*/*;q=0.1";
  EXPECT_EQ(negotiate_format(v2_42), Format::kOpenMetrics);
  EXPECT_EQ(negotiate_format(v3), Format::kOpenMetrics);
  EXPECT_EQ(negotiate_format(v3_protobuf), Format::kOpenMetrics);
  EXPECT_EQ(negotiate_format(v3_text_first), Format::kText);
}

TEST(NegotiateGzip, FollowsTheWeights) {
  for (const char* yes : {"gzip", "GZIP", "x-gzip", "deflate, gzip;q=0.5", "*", "gzip;q=1.0, identity; q=0.5",
                          "br;q=1.0, gzip;q=0.8, *;q=0.1"})
    EXPECT_TRUE(negotiate_gzip(yes)) << yes;
  for (const char* no :
       {"", "identity", "deflate, br", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *", "gzip;q=0.5, identity;q=1"})
    EXPECT_FALSE(negotiate_gzip(no)) << no;
}

}  // namespace
}  // namespace gpuledger::http
