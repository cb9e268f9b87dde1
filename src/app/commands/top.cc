// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
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
  std::string note;  // why a running exporter's books are not shown
  top::Feed::Read read;
  top::Books first;
  bool own = false;  // no exporter keeps them, only this program
};

Result<Source> open_exporter(const top::Exporter& exporter) {
  GL_TRY(first, top::read_exporter(exporter, {}));
  const auto read = [exporter](const std::stop_token& stop) { return top::read_exporter(exporter, stop); };
  return Source{"books of " + exporter.url.text, "", read, std::move(first)};
}

// The exporter at --url, else the one on this machine. Empty: there is none; `note` then says why its books are not
// shown, and `local` is the address that was tried.
struct Found {
  std::optional<Source> source;
  std::string note;
  std::string local;
};

// With --backend the user wants our own books.
Result<Found> find_exporter(const Config& config) {
  Found found;
  if (config.url && !config.url->none) {
    GL_TRY(source, open_exporter({*config.url, config.url_ca_file}));
    found.source = std::move(source);
    return found;
  }
  if (config.url || config.backend != Backend::kAuto) return found;
  const top::Exporter local{local_exporter(config.listen_addresses.front()), config.url_ca_file, kPatienceWithLocal};
  if (local.url.text.empty()) return found;
  found.local = local.url.text;
  auto source = open_exporter(local);
  if (source.ok()) {
    found.source = *std::move(source);
  } else if (source.error().code != Code::kNotFound) {
    // An exporter answers, but its books cannot be read. The user must know that the books shown are not the
    // exporter's.
    found.note = source.error().message;
  }
  return found;
}

// There is nothing to show: top also runs on machines without a GPU.
Error nothing_to_show(const Found& found, const Error& driver) {
  const size_t open = driver.message.find('('), close = driver.message.find("):");
  const bool has_reason = open != std::string::npos && close != std::string::npos && open < close;
  const std::string missing =
      "this machine has no NVIDIA driver" + (has_reason ? " " + driver.message.substr(open, close + 1 - open) : "");
  if (!found.note.empty()) return {driver.code, missing + "; " + found.note};
  const std::string nobody = found.local.empty() ? "" : "no gpu-ledger answers at " + found.local + ", and ";
  return {driver.code,
          nobody + missing + "; to watch a node: gpu-ledger top --url=http://NODE:9400; to try it: --backend=sim"};
}

// Our own books, which begin now. They are also written and read as JSON, so that the table has one kind of input.
Result<Source> open_own(const Config& config, const Clock& clock, const Found& found) {
  Config quiet = config;
  // These are for the program that serves; top writes no file.
  quiet.textfile.clear();
  quiet.state_file.clear();
  const bool no_wish = config.backend == Backend::kAuto && config.nvml_library.empty();
  if (no_wish) quiet.backend = Backend::kNvml;  // as with auto, but without the advice for other commands
  auto node = open_node(quiet, clock);
  if (!node.ok()) {
    const bool no_driver = no_wish && node.error().message.starts_with("cannot load the NVIDIA library");
    return no_driver ? nothing_to_show(found, node.error()) : node.error();
  }
  const auto shared = std::make_shared<Node>(std::move(*node));
  const auto read = [shared](const std::stop_token&) -> Result<top::Books> {
    const auto snapshot = shared->pipeline->run_cycle();
    return top::parse_books(snapshot->json.get());
  };
  GL_TRY(first, read({}));
  return Source{"own books since " + top::clock_text(first.at), found.note, read, std::move(first), true};
}

// Our own books begin now, so without a GPU that answers they are empty.
Status check_own(const top::Books& books) {
  const auto& gpus = books.gpus;
  const bool any_up = std::any_of(gpus.begin(), gpus.end(), [](const top::Books::Gpu& gpu) { return gpu.up; });
  if (any_up || books.troubles.empty()) return ok_status();
  const top::Books::Trouble& trouble = books.troubles.front();
  return Error{Code::kUnavailable, clean_text(trouble.source + ": " + trouble.reason, kLongestReason)};
}

// Reads the books twice, to compute the watts. If the exporter's next cycle comes too late, there are no watts.
Status print_once(Source source, const Config& config, const Clock& clock) {
  top::Reading reading;
  const Nanoseconds begin = clock.now().steady;
  top::take_books(std::move(source.first), begin, reading);
  while (!reading.before && clock.now().steady - begin < config.sample_interval + kPatienceWithStep) {
    std::this_thread::sleep_for(config.sample_interval);
    GL_TRY(books, source.read({}));
    top::take_books(std::move(books), clock.now().steady, reading);
  }
  if (source.own) GL_TRY_STATUS(check_own(*reading.now));
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
  if (!config.top_batch) {
    GL_TRY_STATUS(top::Terminal::check());
    // Log lines would garble the table, which shows failures itself.
    (void)configure_log("error", config.log_format);
  }
  // Before the signals are blocked: an exporter may answer slowly, and Ctrl-C must end the wait.
  GL_TRY(found, find_exporter(config));
  UniqueFd signals;
  if (!config.top_batch) {
    signals = top::take_signals();
    if (!signals) return errno_error("signalfd", "", errno);
  }
  GL_TRY(source, found.source ? Result<Source>(*std::move(found.source)) : open_own(config, clock, found));
  if (config.top_batch) return print_once(std::move(source), config, clock);
  const top::Feed feed(std::move(source.first), std::move(source.read), config.sample_interval, clock);
  GL_TRY_STATUS(Status(feed.started()).about("the reader of the books"));
  return run_live(feed, source.text, source.note, signals.get());
}

}  // namespace gpuledger::app
