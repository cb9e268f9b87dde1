// SPDX-License-Identifier: Apache-2.0
#include "http/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "http/gzip.h"
#include "http/http_date.h"
#include "unit/http/gunzip.h"
#include "unit/http/sample_snapshot.h"

namespace gpuledger::http {
namespace {

using testing::HasSubstr;

constexpr Nanoseconds kNow = std::chrono::seconds(1000);

std::string header_of(const Reply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.headers)
    if (key == name) return value;
  return {};
}

Reply get(std::string_view target, std::shared_ptr<const Snapshot> snapshot = sample_snapshot(kNow),
          std::string_view accept = "", std::string_view accept_encoding = "") {
  PackedSnapshot packed;
  return route({"GET", target, accept, accept_encoding}, {"/metrics", std::chrono::seconds(5)}, std::move(snapshot),
               packed, kNow);
}

TEST(Routes, ServeTheFormatTheClientWants) {
  const Reply text = get("/metrics");
  EXPECT_EQ(text.status, 200u);
  EXPECT_EQ(text.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(*text.body, sample_snapshot(kNow)->text.get());
  EXPECT_EQ(header_of(text, "Vary"), "Accept, Accept-Encoding");
  const Reply open = get("/metrics", sample_snapshot(kNow), "application/openmetrics-text; version=1.0.0");
  EXPECT_EQ(open.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_EQ(*open.body, sample_snapshot(kNow)->openmetrics.get());
  const Reply neither = get("/metrics", sample_snapshot(kNow), "application/json");
  EXPECT_EQ(neither.status, 200u) << "as from other exporters";
  EXPECT_EQ(neither.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(header_of(neither, "Vary"), "Accept, Accept-Encoding");
}

TEST(Routes, ServeTheGpusUnderDcgmsNames) {
  EXPECT_EQ(get("/gpu/metrics").status, 404u) << "nobody wants them made";
  EXPECT_NE(get("/gpu/metrics").body->find("switch one on with --collector.dcgm or --collector.dcgm-modern"),
            std::string::npos);
  auto snapshot = std::make_shared<Snapshot>(*sample_snapshot(kNow));
  snapshot->serves_gpu = true;
  snapshot->gpu_text = LazyText("dcgm_gpu_temp 33\n");
  snapshot->gpu_openmetrics = LazyText("dcgm_gpu_temp 33\n# EOF\n");
  EXPECT_EQ(*get("/gpu/metrics", snapshot).body, "dcgm_gpu_temp 33\n");
  const Reply open = get("/gpu/metrics", snapshot, "application/openmetrics-text; version=1.0.0");
  EXPECT_EQ(open.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_EQ(*open.body, "dcgm_gpu_temp 33\n# EOF\n");
  snapshot->gpu_text = LazyText();  // no GPU is no reason for 404
  snapshot->gpu_openmetrics = LazyText("# EOF\n");
  EXPECT_EQ(get("/gpu/metrics", snapshot).status, 200u);
  EXPECT_EQ(get("/gpu/metrics", nullptr).status, 503u);
  bool made = false;
  snapshot->gpu_openmetrics = LazyText([&] { return made = true, std::string("# EOF\n"); });
  EXPECT_EQ(get("/gpu/metrics", snapshot).status, 200u);
  EXPECT_FALSE(made) << "a format nobody asked for";
}

TEST(Routes, DoNotCopyTheSnapshot) {
  const auto snapshot = sample_snapshot(kNow);
  EXPECT_EQ(get("/metrics", snapshot).body.get(), &snapshot->text.get());
  EXPECT_EQ(get("/api/v1/snapshot", snapshot).body.get(), &snapshot->json.get());
  EXPECT_EQ(get("/api/v1/history", snapshot).body.get(), &snapshot->history.get());
  EXPECT_EQ(get("/api/v1/history", snapshot).content_type, "application/json");
}

TEST(Routes, PackOnRequest) {
  for (const char* path : {"/metrics", "/api/v1/snapshot", "/api/v1/history"}) {
    const Reply plain = get(path);
    const Reply packed = get(path, sample_snapshot(kNow), "", "gzip");
    EXPECT_EQ(header_of(plain, "Content-Encoding"), "");
    EXPECT_EQ(header_of(packed, "Content-Encoding"), "gzip");
    EXPECT_EQ(gunzip(*packed.body), *plain.body);
    EXPECT_EQ(packed.content_type, plain.content_type);
    EXPECT_EQ(header_of(get(path, sample_snapshot(kNow), "", "gzip;q=0"), "Content-Encoding"), "");
  }
}

TEST(Routes, PackASnapshotOnce) {
  auto snapshot = sample_snapshot(kNow);
  PackedSnapshot packed;
  const auto body = [&](const char* method, const char* target, const char* accept) {
    return route({method, target, accept, "gzip"}, {}, snapshot, packed, kNow).body;
  };
  const char* open = "application/openmetrics-text; version=1.0.0";
  const auto text = body("GET", "/metrics", "");
  const auto openmetrics = body("GET", "/metrics", open);
  const auto json = body("GET", "/api/v1/snapshot", "");
  EXPECT_EQ(gunzip(*openmetrics), snapshot->openmetrics.get());
  for (const char* method : {"GET", "HEAD"}) {
    EXPECT_EQ(body(method, "/metrics", ""), text);
    EXPECT_EQ(body(method, "/metrics", open), openmetrics);
    EXPECT_EQ(body(method, "/api/v1/snapshot", ""), json);
  }

  auto next = std::make_shared<Snapshot>(*snapshot);
  next->text = LazyText("another 1\n");
  const std::weak_ptr<const Snapshot> gone = std::exchange(snapshot, next);
  EXPECT_TRUE(gone.expired()) << "the packed bytes do not keep the plain ones";
  EXPECT_EQ(gunzip(*body("GET", "/metrics", "")), "another 1\n");
  EXPECT_EQ(text.use_count(), 1) << "those of the earlier snapshot are forgotten";
}

TEST(Routes, AnswerBeforeTheFirstSnapshot) {
  EXPECT_EQ(get("/metrics", nullptr).status, 503u);
  EXPECT_EQ(get("/api/v1/snapshot", nullptr).status, 503u);
  EXPECT_EQ(get("/api/v1/history", nullptr).status, 503u);
  EXPECT_EQ(get("/healthz", nullptr).status, 200u);
  EXPECT_EQ(get("/", nullptr).status, 200u);
  const Reply ready = get("/-/ready", nullptr);
  EXPECT_EQ(ready.status, 503u);
  EXPECT_EQ(*ready.body, "no snapshot yet\n");
}

TEST(Routes, SayWhyNotReady) {
  for (const char* path : {"/-/ready", "/readyz"}) {
    EXPECT_EQ(get(path).status, 200u);
    const Reply old = get(path, sample_snapshot(kNow - std::chrono::seconds(12)));
    EXPECT_EQ(old.status, 503u);
    EXPECT_EQ(*old.body, "the last snapshot is 12.0 s old, more than 5.0 s\n");
    const Reply down = get(path, sample_snapshot(kNow, false));
    EXPECT_EQ(down.status, 503u);
    EXPECT_EQ(*down.body, "the GPU source nvml is down: driver not loaded\n");
  }
  EXPECT_EQ(get("/metrics", sample_snapshot(kNow - std::chrono::seconds(12))).status, 200u)
      << "stale, but still served";
}

TEST(Routes, Health) {
  for (const char* path : {"/healthz", "/health"}) {
    const Reply reply = get(path, sample_snapshot(kNow, false));
    EXPECT_EQ(reply.status, 200u);
    EXPECT_EQ(*reply.body, "ok\n");
  }
}

TEST(Routes, PageLinksEverythingAndLoadsOnlyItsOwn) {
  PackedSnapshot packed;
  const Reply reply = route({"GET", "/", "", ""}, {"/m\"><script>", Nanoseconds(0)}, nullptr, packed, kNow);
  EXPECT_EQ(reply.content_type, "text/html; charset=utf-8");
  for (const char* link : {"/api/v1/snapshot", "/api/v1/history", "/healthz", "/readyz", "/m&quot;&gt;&lt;script&gt;"})
    EXPECT_THAT(*reply.body, HasSubstr("<a href=\"." + std::string(link) + "\">"));
  EXPECT_EQ(reply.body->find("<script>"), std::string::npos);
  EXPECT_EQ(reply.body->find("http"), std::string::npos);
  EXPECT_EQ(reply.body->find("@LINKS@"), std::string::npos);
  size_t bytes = 0;
  for (const char* path : {"/", "/page.css", "/page.js"}) {
    const Reply part = get(path, nullptr);
    EXPECT_EQ(part.status, 200u) << path;
    EXPECT_THAT(header_of(part, "Content-Security-Policy"),
                HasSubstr("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"));
    EXPECT_EQ(header_of(part, "X-Content-Type-Options"), "nosniff");
    bytes += part.body->size();
  }
  EXPECT_LT(bytes, 100'000u);
  EXPECT_EQ(get("/page.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(get("/page.js").content_type, "text/javascript; charset=utf-8");
}

TEST(Routes, PathsAndMethods) {
  PackedSnapshot packed;
  for (const char* path : {"/metrics?collect=x", "/metrics?", "http://node:9400/metrics", "https://node/metrics?a"})
    EXPECT_EQ(get(path).content_type, "text/plain; version=0.0.4; charset=utf-8") << path;
  EXPECT_EQ(get("http://node:9400").content_type, "text/html; charset=utf-8");
  for (const char* path : {"/metrics/", "/metricsx", "/Metrics", "//", "", "*", "/../metrics", "/favicon.ico"}) {
    const Reply reply = get(path);
    EXPECT_EQ(reply.status, 404u) << path;
    EXPECT_FALSE(reply.body->empty());
  }
  for (const char* path :
       {"/metrics", "/", "/page.css", "/page.js", "/healthz", "/-/ready", "/api/v1/snapshot", "/api/v1/history"}) {
    EXPECT_EQ(route({"HEAD", path, "", ""}, {}, sample_snapshot(kNow), packed, kNow).status, 200u);
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get"}) {
      const Reply reply = route({method, path, "", ""}, {}, sample_snapshot(kNow), packed, kNow);
      EXPECT_EQ(reply.status, 405u) << method << path;
      EXPECT_EQ(header_of(reply, "Allow"), "GET, HEAD");
    }
  }
  EXPECT_EQ(route({"POST", "/nowhere", "", ""}, {}, nullptr, packed, kNow).status, 404u);
  EXPECT_EQ(route({"GET", "/", "", ""}, {"/", Nanoseconds(0)}, sample_snapshot(kNow), packed, kNow).content_type,
            "text/plain; version=0.0.4; charset=utf-8");
}

TEST(Gzip, RoundTrips) {
  std::string large;
  for (int i = 0; i < 20000; ++i) large += "gpu_ledger_device_up{gpu=\"" + std::to_string(i) + "\"} 1\n";
  for (const std::string& plain : {std::string(), std::string("x"), std::string("a\0b", 3), large}) {
    const auto packed = gzip(plain);
    ASSERT_TRUE(packed);
    EXPECT_EQ(gunzip(*packed), plain);
  }
  EXPECT_LT(gzip(large)->size(), large.size() / 5);
}

TEST(HttpDate, IsTheOneOfTheStandard) {
  EXPECT_EQ(http_date(std::chrono::seconds(784111777)), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace gpuledger::http
