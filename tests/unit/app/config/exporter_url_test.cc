// SPDX-License-Identifier: Apache-2.0
#include "app/config/exporter_url.h"

#include <gmock/gmock.h>

#include "config_reading.h"

namespace gpuledger::app {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ExporterUrl, Forms) {
  const auto plain = parse_exporter_url("http://node7:9400");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->http.host, "node7");
  EXPECT_EQ(plain->http.port, 9400);
  EXPECT_EQ(plain->http.target, "/api/v1/snapshot");
  EXPECT_EQ(plain->text, "http://node7:9400");
  EXPECT_EQ(plain->user_password, "");

  EXPECT_EQ(parse_exporter_url("https://node7/gpu/")->http.target, "/gpu/api/v1/snapshot");
  EXPECT_EQ(parse_exporter_url("https://node7/gpu/")->http.port, 443);
  EXPECT_TRUE(parse_exporter_url("https://node7/")->http.tls);
  EXPECT_EQ(parse_exporter_url("http://[::1]:9400/api/v1/snapshot")->http.target, "/api/v1/snapshot");
  EXPECT_EQ(parse_exporter_url("unix:/run/gpu-ledger.sock")->unix_path, "/run/gpu-ledger.sock");
  EXPECT_EQ(parse_exporter_url("unix:/run/gpu-ledger.sock")->http.target, "/api/v1/snapshot");
  EXPECT_TRUE(parse_exporter_url("none")->none);
}

TEST(ExporterUrl, UserAndPasswordAreNotShown) {
  const auto url = parse_exporter_url("http://ann:s%40cret%3a@node7:9400/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->user_password, "ann:s@cret:");
  EXPECT_EQ(url->text, "http://node7:9400/");
  EXPECT_EQ(url->http.text, "http://node7:9400/");
  EXPECT_EQ(parse_exporter_url("http://a:p@ss@node7")->user_password, "a:p@ss");
  EXPECT_EQ(parse_exporter_url("http://a:p@ss@node7")->http.host, "node7");
  EXPECT_EQ(parse_exporter_url("http://ann@node7")->user_password, "ann:");
  for (const char* wrong :
       {"ann:secret@node7:9400", "http://ann:sec%zzret@node7", "http://ann:secret@", "ftp://a:secret@b",
        "http://ann:secret@node7:99999", "http://:secret@node7", "http://ann:secret@node7?x=1"}) {
    const auto parsed = parse_exporter_url(wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_THAT(parsed.error().message, Not(HasSubstr("sec"))) << wrong;
  }
}

// It would be the path or the port of another host.
TEST(ExporterUrl, APasswordMustBeEscaped) {
  for (const std::string flag : {"--url=", "--prometheus-url=", "--push-url="}) {
    const std::string command = flag == "--url=" ? "top" : flag == "--push-url=" ? "serve" : "bill";
    for (const std::string wrong :
         {"https://ann:pa/ss@node7/api", "https://ann:12/ss@node7/api", "https://ann:pa#ss@node7/api",
          "https://ann:pa?ss@node7/api", "https://ann:p@pa/ss@node7/api", "https://node7/p@pass"}) {
      EXPECT_THAT(error_of({command, flag + wrong}),
                  testing::AllOf(HasSubstr("%2F for /"), HasSubstr("%40 for @"), Not(HasSubstr("pa/")),
                                 Not(HasSubstr("ss@")), Not(HasSubstr("ann"))))
          << wrong;
    }
    EXPECT_THAT(error_of({command, flag + "ann:pa//ss@node7/api"}), Not(HasSubstr("pa/")));
  }
  for (const char* wrong : {"ann:pass@node7", "http://ann:pa/ss@node7", "http://ann:12/ss@node7"}) {
    EXPECT_THAT(error_of({std::string("--dcgm-exporter-url=") + wrong}), Not(HasSubstr("ann"))) << wrong;
  }
  EXPECT_EQ(parse_exporter_url("https://ann:pa%2Fss@node7")->user_password, "ann:pa/ss");
}

TEST(ExporterUrl, AQueryIsNotShown) {
  for (const std::string flag : {"--url=", "--prometheus-url=", "--push-url=", "--dcgm-exporter-url="}) {
    const std::string command = flag == "--url=" ? "top" : flag == "--prometheus-url=" ? "bill" : "serve";
    for (const std::string wrong :
         {"node7?token=SECRET", "ftp://node7/w?token=SECRET", "http://node7:x/w?token=SECRET", "http://node7/w#SECRET",
          "http://node7/w?token=SECRET word", "ftp://node7/w?token=a@SECRET", "ftp://ann:SEC?RET@node7/w"}) {
      const std::string said = error_of({command, flag + wrong});
      EXPECT_THAT(said, testing::StartsWith(flag.substr(0, flag.size() - 1) + ": ")) << wrong;
      EXPECT_THAT(said, testing::AllOf(Not(HasSubstr("SEC")), Not(HasSubstr("RET")))) << wrong;
    }
  }
  EXPECT_EQ(error_of({"top", "--url=http://node7/x?token=SECRET"}),
            "--url: \"http://node7/x\" with a query is not an exporter's address (write http://NODE:9400, "
            "https://NODE:9400, unix:/PATH or none)");
  const auto url = parse_http_url("http://node7/metrics?token=SECRET");
  EXPECT_EQ(url->text, "http://node7/metrics");
  EXPECT_EQ(url->target, "/metrics?token=SECRET");
}

TEST(ExporterUrl, WrongOnes) {
  for (const char* wrong : {"", "node7", "node7:9400", ":9400", "http://", "http://x y", "http://x:0",
                            "unix:", "unix:relative", "http://x/?a=1", "http://x#y", "none/", "file:///etc/passwd"}) {
    EXPECT_THAT(error_of({"top", std::string("--url=") + wrong}),
                testing::AllOf(testing::StartsWith("--url: "), HasSubstr("http://NODE:9400, https://NODE:9400")))
        << wrong;
  }
  EXPECT_EQ(error_of({"--url=http://node7"}), "--url: needs the command top or job");
}

TEST(ExporterUrl, OfThisMachine) {
  EXPECT_EQ(local_exporter(":9400").text, "http://127.0.0.1:9400");
  EXPECT_EQ(local_exporter("0.0.0.0:1234").text, "http://127.0.0.1:1234");
  EXPECT_EQ(local_exporter("[::]:1234").text, "http://127.0.0.1:1234");
  EXPECT_EQ(local_exporter("[::1]:1234").text, "http://[::1]:1234");
  EXPECT_EQ(local_exporter("10.1.2.3:1234").http.host, "10.1.2.3");
  EXPECT_EQ(local_exporter("unix:/run/x").unix_path, "/run/x");
  EXPECT_EQ(local_exporter("127.0.0.1:0").text, "") << "the kernel picked the port";
}

}  // namespace
}  // namespace gpuledger::app
