// SPDX-License-Identifier: Apache-2.0
#include "config_reading.h"

namespace gpuledger::app {
namespace {

struct Wrong {
  std::vector<std::string> arguments;
  std::string message;
};

void expect_all(std::initializer_list<Wrong> cases) {
  for (const Wrong& c : cases) EXPECT_EQ(error_of(c.arguments), c.message);
}

TEST(WrongUse, UnknownNames) {
  expect_all({
      {{"--sample-intervall=1s"}, "unknown flag --sample-intervall (did you mean --sample-interval?)"},
      {{"-loglevel=debug"}, "unknown flag --loglevel (did you mean --log-level?)"},
      {{"--no-collector.idel"}, "unknown flag --no-collector.idel (did you mean --no-collector.idle?)"},
      {{"--no-log-level"}, "unknown flag --no-log-level (did you mean --log-level?)"},
      {{"--frobnicate"}, "unknown flag --frobnicate (gpu-ledger --help lists them)"},
      {{"-x"}, "unknown flag --x (gpu-ledger --help lists them)"},
      {{"--a\nb"}, "unknown flag --a\\nb (gpu-ledger --help lists them)"},
      {{"---log-level=info"}, "unknown flag ---log-level (did you mean --log-level?)"},
      {{"tpo"}, "unknown command \"tpo\" (did you mean top?)"},
      {{"sreve"}, "unknown command \"sreve\" (did you mean serve?)"},
      {{"help", "tpo"}, "unknown command \"tpo\" (did you mean top?)"},
      {{"frobnicate"}, "unknown command \"frobnicate\" (gpu-ledger help lists them)"},
      {{"foo"}, "unknown command \"foo\" (gpu-ledger help lists them)"},
      {{"to"}, "unknown command \"to\" (did you mean top?)"},
      {{""}, "unknown command \"\" (gpu-ledger help lists them)"},
      {{"--ulr=x"}, "unknown flag --ulr (did you mean --url?)"},
      {{"version", "--log-level=debug"}, "--log-level: not with the command version"},
      {{"completion", "tcsh"}, "completion: \"tcsh\" is not one of bash, zsh or fish"},
      {{"completion"}, "completion: needs an argument (gpu-ledger completion bash|zsh|fish)"},
      {{"serve", "once"}, "unexpected argument \"once\""},
      {{"replay"}, "replay: needs an argument (gpu-ledger replay FILE)"},
      {{"record", "--for=10s"}, "record: needs an argument (gpu-ledger record FILE)"},
      {{"record", ""}, "unexpected argument \"\""},
      {{"replay", "a.jsonl", "b.jsonl"}, "unexpected argument \"b.jsonl\""},
      {{"replay", "a.jsonl", "--for=10s"}, "--for: needs the command record"},
      {{"record", "a.jsonl", "--record-names=some"}, "--record-names: \"some\" is not one of hashed, plain or none"},
      {{"replay", "a.jsonl", "--record-names=plain"}, "--record-names: needs the command record"},
      {{"record", "a.jsonl", "--series"}, "--series: needs the command replay"},
      {{"--batch"}, "--batch: needs the command top"},
      {{"job", "abc"}, "job: \"abc\" is not a job number; squeue -o '%A %i' shows the number of an array's task"},
      {{"job", "5", "--url=none"}, "--url=none: job needs a running exporter"},
      {{"job", "5", "--listen-address=127.0.0.1:0"},
       "job: the exporter's address cannot be derived from --listen-address; give it with --url"},
      {{"record", "a.jsonl", "--for=10ms"}, "--for: \"10ms\" is not between 1s and 7d"},
  });
}

TEST(WrongUse, ExactTime) {
  expect_all({
      {{"--exact-time=yes"}, "--exact-time: \"yes\" is not one of off, auto or on"},
      {{"--exact-time=off", "--exact-time-budget=1%"}, "--exact-time-budget: needs --exact-time=auto or on"},
  });
  for (const char* wrong : {"", "%", "0", "0%", "-1%", "101%", "x%", "1 %", "0,5%", "2s", "nan", "inf"}) {
    EXPECT_EQ(error_of({std::string("--exact-time-budget=") + wrong}),
              std::string("--exact-time-budget: \"") + wrong +
                  "\" is not a percentage (write 0.5%; more than 0, 100% at most)");
  }
}

TEST(WrongUse, RightsOfFiles) {
  for (const char* wrong : {"", "0400", "0777", "0648", "rw", "00644", "4644", "-600"}) {
    EXPECT_EQ(
        error_of({std::string("--state-file-mode=") + wrong}),
        std::string("--state-file-mode: \"") + wrong + "\" is not a file's rights in octal between 0600 and 0666");
  }
}

TEST(WrongUse, MissingValue) {
  expect_all({
      {{"--log-level"}, "--log-level: needs a value (debug, info, warn or error)"},
      {{"--log-format", "--log-level=info"}, "--log-format: needs a value (text or json)"},
  });
}

TEST(WrongUse, Durations) {
  expect_all({
      {{"--sample-interval=5"}, "--sample-interval: \"5\" is not a duration (write 500ms, 10s, 1m30s)"},
      {{"--sample-interval="}, "--sample-interval: \"\" is not a duration (write 500ms, 10s, 1m30s)"},
      {{"--sample-interval", "-5s"}, "--sample-interval: \"-5s\" is negative (write 500ms, 10s, 1m30s)"},
      {{"--sample-interval=0"}, "--sample-interval: \"0\" is not between 100ms and 1d"},
      {{"--sample-interval=99ms"}, "--sample-interval: \"99ms\" is not between 100ms and 1d"},
      {{"--dcgm-update-frequency=50ms"}, "--dcgm-update-frequency: \"50ms\" is not between 100ms and 1d"},
      {{"--process-scan-interval=2d"}, "--process-scan-interval: \"2d\" is not between 100ms and 1d"},
      {{"--idle-interval=0s"}, "--idle-interval: \"0s\" is not between 100ms and 1d"},
      {{"--metric-retention=2y"}, "--metric-retention: \"2y\" is not between 0s and 365d"},
      {{"--owner-retention=2y"}, "--owner-retention: \"2y\" is not between 0s and 365d"},
      {{"--max-series=many"}, "--max-series: \"many\" is no whole number up to 1000000000"},
      {{"--max-ended-owners=-1"}, "--max-ended-owners: \"-1\" is no whole number up to 1000000000"},
      {{"--metric-retention=999y"}, "--metric-retention: \"999y\" is too long a duration"},
      {{"--sample-interval=2s", "--idle-interval=1s"}, "--idle-interval: 1s is shorter than --sample-interval (2s)"},
      {{"--dcgm-update-frequency=30s", "--process-scan-interval=10s"},
       "--process-scan-interval: 10s is shorter than --dcgm-update-frequency (30s)"},
  });
}

TEST(WrongUse, Choices) {
  expect_all({
      {{"--log-level=loud"}, "--log-level: \"loud\" is not one of debug, info, warn or error"},
      {{"--log-level=INFO"}, "--log-level: \"INFO\" is not one of debug, info, warn or error"},
      {{"--log-format=xml"}, "--log-format: \"xml\" is not one of text or json"},
      {{"--attribution=fair"}, "--attribution: \"fair\" is not one of adaptive, utilization or measured-only"},
      {{"--static-power=x"}, "--static-power: \"x\" is not one of proportional, equal or separate"},
      {{"--backend=cuda"}, "--backend: \"cuda\" is not one of auto, nvml, dcgm or sim"},
      {{"--dcgm-address=localhost"}, "--dcgm-address: needs --backend=dcgm"},
      {{"--dcgm-embedded"}, "--dcgm-embedded: needs --backend=dcgm"},
      {{"--backend=dcgm", "--dcgm-embedded", "--dcgm-address=a"}, "--dcgm-embedded: not together with --dcgm-address"},
      {{"--pod-source=etcd"}, "--pod-source: \"etcd\" is not one of auto, pods-api, apiserver, kubelet, cri or none"},
      {{"--kubernetes-enabled=maybe"}, "--kubernetes-enabled: \"maybe\" is not one of auto, true or false"},
      {{"--collector.idle=maybe"}, "--collector.idle: \"maybe\" is neither true nor false"},
      {{"--no-collector.idle=maybe"}, "--no-collector.idle: \"maybe\" is neither true nor false"},
      {{"--enable-energy-estimation=2"}, "--enable-energy-estimation: \"2\" is neither true nor false"},
  });
}

TEST(WrongUse, Addresses) {
  const std::string forms = " is not an address (write :9400, 127.0.0.1:9400, [::1]:9400 or unix:/path)";
  for (const std::string text : {"9400", "localhost", ":", ":http", "::1:9400", "[::1]9400", "[::1]", "[host]:1",
                                 "a b:1", "http://x:1", "unix:", "unix:relative", "unix:/dir/", ":-1", ":+1"}) {
    EXPECT_EQ(error_of({"--listen-address=" + text}), "--listen-address: \"" + text + "\"" + forms);
  }
  expect_all({
      {{"--listen-address="}, "--listen-address: needs at least one address (write :9400)"},
      {{"--listen-address=:65536"}, "--listen-address: \":65536\" has a port over 65535"},
      {{"--listen-address=:99999999999999999999"}, "--listen-address: \":99999999999999999999\" has a port over 65535"},
      {{"--listen-address=:1,x"}, "--listen-address: \"x\"" + forms},
  });
  const std::string long_path = "unix:/" + std::string(200, 'a');
  EXPECT_EQ(error_of({"--listen-address=" + long_path}),
            "--listen-address: \"" + long_path + "\" is longer than a socket's path may be (107 bytes)");
  for (const char* text : {":0", "localhost:9400", "0.0.0.0:1", "[fe80::1%eth0]:9400", "unix:/run/x.sock"}) {
    EXPECT_EQ(error_of({"--listen-address", text}), "(no error)") << text;
  }
}

TEST(WrongUse, OtherValues) {
  const std::string watts = " is not a power in watts (0 to 10000; 0 or learned: found out while running)";
  const std::string prefix = " cannot begin a metric's name (letters, digits, _ and :, no digit first)";
  const std::string gpu = " is neither a GPU's index (0) nor its UUID (GPU-...)";
  expect_all({
      {{"--gpu-idle-power=-1"}, "--gpu-idle-power: \"-1\"" + watts},
      {{"--gpu-idle-power=25W"}, "--gpu-idle-power: \"25W\"" + watts},
      {{"--gpu-idle-power=nan"}, "--gpu-idle-power: \"nan\"" + watts},
      {{"--gpu-idle-power=1e9"}, "--gpu-idle-power: \"1e9\"" + watts},
      {{"--gpu-idle-power="}, "--gpu-idle-power: \"\"" + watts},
      {{"--metric-prefix=9gpu"}, "--metric-prefix: \"9gpu\"" + prefix},
      {{"--metric-prefix=my-gpu"}, "--metric-prefix: \"my-gpu\"" + prefix},
      {{"--metric-prefix="}, "--metric-prefix: \"\"" + prefix},
      {{"--gpu-devices=0,first"}, "--gpu-devices: \"first\"" + gpu},
      {{"--gpu-devices=-1"}, "--gpu-devices: \"-1\"" + gpu},
      {{"--gpu-devices=GPU-"}, "--gpu-devices: \"GPU-\"" + gpu},
      {{"--gpu-devices=all,0"}, "--gpu-devices: \"all\"" + gpu},
      {{"--metrics-path=metrics"}, "--metrics-path: \"metrics\" does not start with /"},
      {{"--metrics-path="}, "--metrics-path: \"\" does not start with /"},
      {{"--metrics-path=/a?b"}, "--metrics-path: \"/a?b\" is not a plain path (write /metrics)"},
      {{"--metrics-path=/a b"}, "--metrics-path: \"/a b\" is not a plain path (write /metrics)"},
      {{"--metrics-path=/api/v1/history"}, "--metrics-path: \"/api/v1/history\" is another page's path"},
      {{"--metrics-path=/healthz"}, "--metrics-path: \"/healthz\" is another page's path"},
      {{"--proc-root="}, "--proc-root: needs a path"},
      {{"--config="}, "--config: needs a path"},
      {{"--dcgm-exporter-url=http://a/", "--dcgm-exporter-file=/b"},
       "--dcgm-exporter-file: not together with --dcgm-exporter-url"},
      {{"--dcgm-exporter-file="}, "--dcgm-exporter-file: needs a path"},
      {{"--dcgm-exporter-file=/b", "--textfile-dcgm"},
       "--textfile-dcgm: not in add-on mode, where /gpu/metrics is another exporter's"},
      {{"accounting"}, "accounting: needs an argument (gpu-ledger accounting status|on|off)"},
      {{"accounting", "maybe"}, "accounting: \"maybe\" is not one of status, on or off"},
      {{"accounting", "on", "off"}, "unexpected argument \"off\""},
      {{"--dcgm-exporter-url=localhost"},
       "--dcgm-exporter-url: \"localhost\" is not a URL (write http://127.0.0.1:9400/metrics)"},
      {{"--sim-scenario=x.json"}, "--sim-scenario: needs --backend=sim"},
      {{"--sim-scenario=x.json", "--backend=nvml"}, "--sim-scenario: needs --backend=sim"},
  });
}

TEST(WrongUse, Push) {
  const std::string url = "--push-url=http://a:9090/api/v1/write";
  const std::string label = " is not NAME=VALUE with the name of a label (write cluster=east)";
  const std::string header =
      "has a part that is not NAME=VALUE with the name of a header (write X-Scope-OrgID=TENANT; a value with a comma "
      "needs a list in the config file)";
  const std::string size = " is not a size between 1MiB and 1TiB (write 256MiB or 2GiB)";
  expect_all({
      {{"--push-url=ann:secret@a:9090"},
       "--push-url: \"...@a:9090\" is not a receiver's address (write http://HOST:9090/api/v1/write)"},
      {{"--push-url=ftp://ann:secret@a/x?token=secret"},
       "--push-url: \"ftp://a/x\" is not a receiver's address (write http://HOST:9090/api/v1/write)"},
      {{"--push-url=http://ann:secret@a:9090"},
       "--push-url: \"http://a:9090\" has no path (write it whole: http://HOST:9090/api/v1/write for Prometheus, "
       "https://HOST/api/v1/push for Mimir)"},
      {{"--push-url=http://a:9090?token=secret"},
       "--push-url: \"http://a:9090\" has no path (write it whole: http://HOST:9090/api/v1/write for Prometheus, "
       "https://HOST/api/v1/push for Mimir)"},
      {{url, "--push-queue-size=17MiB"},
       "--push-queue-size: above 16MiB needs --push-queue-dir, because the queue is in memory without it"},
      {{"--push-interval=5s"}, "--push-interval: needs --push-url"},
      {{"--push-labels=a=b"}, "--push-labels: needs --push-url"},
      {{url, "--push-interval=999ms"}, "--push-interval: \"999ms\" is not between 1s and 1h"},
      {{url, "--push-labels=a=b,a=c"}, "--push-labels: \"a\" is given twice"},
      {{url, "--push-labels=a="}, "--push-labels: \"a=\" has no value"},
      {{url, "--push-headers=Content-Type=x"},
       "--push-headers: \"Content-Type\" is a header that the program sets itself"},
      {{url, "--push-headers=A=b\rc"}, "--push-headers: \"A\" has a value that is not plain ASCII"},
      {{url, "--push-password-file=/p"},
       "--push-password-file: needs a user in --push-url (write https://USER@HOST/PATH)"},
      {{"--push-url=http://ann:secret@a/w", "--push-password-file=/p"},
       "--push-password-file: not together with a password in --push-url"},
      {{"--push-url=http://ann@a/w", "--push-bearer-token-file=/t"},
       "--push-bearer-token-file: not together with a user in --push-url"},
  });
  for (const std::string wrong : {"a", "=b", "1a=b", "a-b=c", "__a=b"}) {
    EXPECT_EQ(error_of({url, "--push-labels=" + wrong}), "--push-labels: \"" + wrong + "\"" + label);
  }
  for (const std::string wrong : {"a", "=b", "a b=c", "X-Api-Key:SECRET", "a:SEC=RET", "Cookie=a;b,SECRET"}) {
    EXPECT_EQ(error_of({url, "--push-headers=" + wrong}), "--push-headers: " + header) << "nothing secret is shown";
    EXPECT_EQ(error_of({"bill", "--prometheus-headers=" + wrong}), "--prometheus-headers: " + header);
  }
  for (const std::string wrong : {"", "100", "1KiB", "2TiB", "256MB", "-1MiB", "99999999999999999999GiB", "1.5GiB"}) {
    EXPECT_EQ(error_of({url, "--push-queue-size=" + wrong}), "--push-queue-size: \"" + wrong + "\"" + size);
  }
}

TEST(Push, Settings) {
  const Config config =
      config_of({"--push-url=https://ann@a/api/v1/push?x=1", "--push-password-file=/p",
                 "--push-labels=cluster=east,b=c=d", "--push-queue-size=2GiB", "--push-queue-dir=/q"});
  ASSERT_TRUE(config.push_url);
  EXPECT_TRUE(config.push_url->http.tls);
  EXPECT_EQ(config.push_url->http.target, "/api/v1/push?x=1");
  EXPECT_EQ(config.push_url->http.text, "https://a/api/v1/push") << "a query may hold a token";
  EXPECT_EQ(config.push_url->user_password, "ann:");
  EXPECT_EQ(config.push_queue_size, 2u << 30);
  const std::vector<std::pair<std::string, std::string>> labels = {{"cluster", "east"}, {"b", "c=d"}};
  EXPECT_EQ(config.push_labels, labels);
  const std::string url = "--push-url=http://a/w";
  EXPECT_EQ(config_of({url, "--push-queue-size=16MiB"}).push_queue_size, 16u << 20);
  const ConfigFile file("push-headers: [\"Cookie=a;b,c\"]\n");
  const std::vector<std::pair<std::string, std::string>> headers = {{"Cookie", "a;b,c"}};
  EXPECT_EQ(config_of({url, file.flag()}).push_headers, headers) << "the elements of a list are not split";
}

// Whoever gives such a flag believes that it does something.
TEST(WrongUse, FlagsThatACommandDoesNotUse) {
  const std::string push = "--push-url=http://a/w";
  expect_all({
      {{"once", push}, "--push-url: not with the command once (gpu-ledger once --help lists its flags)"},
      {{push, "once"}, "--push-url: not with the command once (gpu-ledger once --help lists its flags)"},
      {{"once", "--push-interval=5s"},
       "--push-interval: not with the command once (gpu-ledger once --help lists its flags)"},
      {{"once", "--listen-address=:1"},
       "--listen-address: not with the command once (gpu-ledger once --help lists its flags)"},
      {{"once", "--web-config-file=/none"},
       "--web-config-file: not with the command once (gpu-ledger once --help lists its flags)"},
      {{"top", "--batch", push}, "--push-url: not with the command top (gpu-ledger top --help lists its flags)"},
      {{"job", "5", "--backend=sim"}, "--backend: not with the command job (gpu-ledger job --help lists its flags)"},
      {{"bill", "--state-file=/s"}, "--state-file: not with the command bill (gpu-ledger bill --help lists its flags)"},
      {{"replay", "a.jsonl", "--no-collector.idle"},
       "--no-collector.idle: not with the command replay (gpu-ledger replay --help lists its flags)"},
  });
  // The environment and the file are for all commands.
  const ConfigFile file("push-url: http://a/w\nweb-config-file: /none\n");
  EXPECT_EQ(error_of({"once", file.flag()}, {{"GPU_LEDGER_LISTEN_ADDRESS", ":1"}, {"HTTP_PORT", "2"}}), "(no error)");
  EXPECT_EQ(error_of({"doctor", push, "--listen-address=:1", "--web-config-file=/none"}), "(no error)");
  EXPECT_EQ(error_of({"once", "--listen-address=:9400"}), "(no error)") << "what is so anyway";
}

TEST(WrongUse, TwoPodLabelsOfOneName) {
  EXPECT_EQ(error_of({"--pod-labels=team,a.b,a_b"}),
            "--pod-labels: \"a.b\" and \"a_b\" would both be the label label_a_b");
  EXPECT_EQ(config_of({"--pod-labels=a.b,a.c,a.b"}).pod_labels.size(), 3u);
}

// The environment and the file are for all commands; a flag is for the one it stands with.
TEST(WrongUse, SettingsOfOtherCommandsAreIgnoredUnlessTheyAreFlags) {
  const Environment shell = {{"GPU_LEDGER_URL", "http://node7:9400"}, {"GPU_LEDGER_BATCH", "true"}};
  const ConfigFile file("url: http://node8:9400\nseries: true\n");
  for (const char* command : {"serve", "once", "doctor"}) {
    const Config config = config_of({command, file.flag()}, shell);
    EXPECT_FALSE(config.url) << command;
    EXPECT_FALSE(config.top_batch) << command;
  }
  EXPECT_EQ(error_of({"serve"}, {{"GPU_LEDGER_URL", "nonsense"}}), "(no error)");
  EXPECT_EQ(config_of({"top", file.flag()}, shell).url->text, "http://node7:9400");
  EXPECT_EQ(config_of({"top", file.flag()}).url->text, "http://node8:9400");
  EXPECT_EQ(error_of({"serve", "--url=http://node7"}, shell), "--url: needs the command top or job");
}

TEST(WrongUse, VariablesAreNamedAsTheyAre) {
  EXPECT_EQ(error_of({}, {{"GPU_LEDGER_LOG_LEVEL", "x\ny"}}),
            "GPU_LEDGER_LOG_LEVEL: \"x\\ny\" is not one of debug, info, warn or error");
  EXPECT_EQ(error_of({}, {{"HTTP_PORT", "http"}}), "HTTP_PORT: \"http\" is not a port (1 to 65535)");
  EXPECT_EQ(error_of({}, {{"HTTP_PORT", "0"}}), "HTTP_PORT: \"0\" is not a port (1 to 65535)");
  EXPECT_EQ(error_of({}, {{"HTTP_PORT", "65536"}}), "HTTP_PORT: \"65536\" is not a port (1 to 65535)");
  EXPECT_EQ(error_of({}, {{"POLL_INTERVAL", "5"}}), "POLL_INTERVAL: \"5\" is not a duration (write 500ms, 10s, 1m30s)");
  EXPECT_EQ(error_of({"--sample-interval=2s"}, {{"POLL_INTERVAL", "1s"}}),
            "POLL_INTERVAL: 1s is shorter than --sample-interval (2s)");
}

}  // namespace
}  // namespace gpuledger::app
