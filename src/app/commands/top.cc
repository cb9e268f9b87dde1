// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "app/runtime/wiring.h"
#include "app/top/exporter.h"
#include "app/top/feed.h"
#include "app/top/live.h"
#include "app/top/table.h"
#include "app/top/terminal.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

constexpr size_t kBatchColumns = 160;
constexpr size_t kLongestReason = 300;
constexpr Nanoseconds kPatienceWithLocal = std::chrono::seconds(1);
constexpr Nanoseconds kPatienceWithStep = std::chrono::seconds(5);

// Whose books are shown, how to read them, and the first of them.
struct Source {
  std::string text;
  std::string note;  // why not another's
  top::Feed::Read read;
  top::Books first;
};

Result<Source> open_exporter(const top::Exporter& exporter) {
  auto first = top::read_exporter(exporter, {});
  if (!first.ok()) return first.error();
  const auto read = [exporter](const std::stop_token& stop) { return top::read_exporter(exporter, stop); };
  return Source{"books of " + exporter.url.text, "", read, *std::move(first)};
}

// Books that begin now. They are written and read as JSON too: there is one way from books to the table.
Result<Source> open_own(const Config& config, const Clock& clock, const std::string& note) {
  Config quiet = config;
  // These are for the program that serves; top writes no file.
  quiet.textfile.clear();
  quiet.state_file.clear();
  auto node = open_node(quiet, clock);
  if (!node.ok()) return node.error();
  const auto shared = std::make_shared<Node>(std::move(*node));
  const auto read = [shared](const std::stop_token&) -> Result<top::Books> {
    const auto snapshot = shared->pipeline->run_cycle();
    return top::parse_books(snapshot->json.get());
  };
  auto first = read({});
  if (!first.ok()) return first.error();
  return Source{"own books since " + top::clock_text(first->at), note, read, *std::move(first)};
}

// --url, else the exporter on this machine, else books of our own. With --backend somebody wants those.
Result<Source> open_source(const Config& config, const Clock& clock) {
  if (config.url && !config.url->none) return open_exporter({*config.url, config.url_ca_file});
  std::string note;
  if (!config.url && config.backend == Backend::kAuto) {
    top::Exporter local{local_exporter(config.listen_addresses.front()), config.url_ca_file, kPatienceWithLocal};
    if (!local.url.text.empty()) {
      auto found = open_exporter(local);
      if (found.ok()) return found;
      // Somebody is there, but we cannot read the books: that must be said, or ours are taken for those.
      const Code code = found.error().code;
      if (code == Code::kMalformed || code == Code::kPermission) note = found.error().message;
    }
  }
  return open_own(config, clock, note);
}

// The books twice, for the watts. An exporter's next step may be long in coming; then there are no watts.
Status print_once(Source source, const Config& config, const Clock& clock) {
  top::Reading reading;
  const Nanoseconds begin = clock.now().steady;
  top::take_books(std::move(source.first), begin, reading);
  while (!reading.before && clock.now().steady - begin < config.sample_interval + kPatienceWithStep) {
    std::this_thread::sleep_for(config.sample_interval);
    auto books = source.read({});
    if (!books.ok()) return books.error();
    top::take_books(*std::move(books), clock.now().steady, reading);
  }
  const auto& gpus = reading.now->gpus;
  const bool any_up = std::any_of(gpus.begin(), gpus.end(), [](const top::Books::Gpu& gpu) { return gpu.up; });
  if (!any_up && !reading.now->troubles.empty()) {
    const top::Books::Trouble& trouble = reading.now->troubles.front();
    return Error{Code::kUnavailable, clean_text(trouble.source + ": " + trouble.reason, kLongestReason)};
  }
  top::Size size{::isatty(STDOUT_FILENO) ? top::Terminal::size().columns : kBatchColumns, 0};
  const top::Situation situation{source.text + ", as of " + top::clock_text(reading.now->at), "", source.note};
  std::string text;
  for (const top::Line& line : write_screen(*reading.now, reading.before.get(), {}, situation, size).lines) {
    text += write_line(line, top::Terminal::has_colours(), false) + "\n";
  }
  return write_to_stdout(text);
}

}  // namespace

Status top_command(const Config& config, const ConfigSources& /*sources*/) {
  const SystemClock clock;
  UniqueFd signals;
  if (!config.top_batch) {
    if (const Status able = top::Terminal::check(); !able.ok()) return able;
    signals = top::take_signals();
    if (!signals) return errno_error("signalfd", "", errno);
    // Log lines would garble the table, which shows failures itself.
    (void)configure_log("error", config.log_format);
  }
  auto source = open_source(config, clock);
  if (!source.ok()) return source.error();
  if (config.top_batch) return print_once(*std::move(source), config, clock);
  const top::Feed feed(std::move(source->first), std::move(source->read), config.sample_interval, clock);
  return run_live(feed, source->text, source->note, signals.get());
}

}  // namespace gpuledger::app
