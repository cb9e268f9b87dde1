// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "app/bill/allocation_server.h"
#include "app/bill/amounts.h"
#include "app/bill/formats.h"
#include "app/bill/line_words.h"
#include "app/bill/make_statement.h"
#include "app/bill/span.h"
#include "app/bill/tokens.h"
#include "app/commands/signals.h"
#include "app/config/config.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"

namespace gpuledger::app {
namespace {

// A month of a large fleet is thousands of queries.
constexpr Nanoseconds kAnswerTimeout = std::chrono::minutes(5);

Spread spread_of(const std::string& word) {
  if (word == "use") return Spread::kByUse;
  return word == "allocation" ? Spread::kByAllocation : Spread::kKeep;
}

BillServer server_of(const Config& config) {
  BillServer server;
  server.url = *config.prometheus_url;
  server.ca_file = config.prometheus_ca_file;
  server.token_file = config.prometheus_token_file;
  server.password_file = config.prometheus_password_file;
  server.headers = config.prometheus_headers;
  server.answer_within = config.query_timeout;
  return server;
}

BillQuery query_of(const Config& config, const BillPrices& prices, const BillSpan& span, std::chrono::seconds step,
                   const BillServer& server) {
  BillQuery query;
  query.span = span;
  query.step = step;
  query.match = config.bill_match;
  query.price_changes = prices.changes(span.begin, span.end);
  query.share_allocated = config.bill_allocated == "shared";
  query.co2e_grams_per_kwh = config.co2e_grams_per_kwh;
  query.co2e_series = config.co2e_series;
  BillServer deduplicating = server;
  deduplicating.deduplicate = true;
  query.ask_deduplicated = ask_server(std::move(deduplicating));
  return query;
}

Result<BillPrices> prices_of(const Config& config) {
  BillPrices prices{config.currency, config.price_per_kwh, config.price_per_gpu_hour, config.pue,
                    config.co2e_grams_per_kwh};
  if (config.price_list.empty()) return prices;
  constexpr size_t kLargest = 1 << 20;
  GL_TRY(text, read_file(config.price_list, kLargest));
  auto rows = parse_price_list(text);
  if (!rows.ok()) return Error{rows.error().code, "--price-list: " + config.price_list + ": " + rows.error().message};
  prices.rows = *std::move(rows);
  return prices;
}

BillView view_of(const Config& config, const BillPrices& prices) {
  BillView view;
  view.by = config.bill_by;
  view.spread = spread_of(config.bill_spread);
  view.prices = prices;
  view.server = config.prometheus_url->text;
  return view;
}

// Only on a terminal.
void show_progress(size_t done, size_t all) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r%zu of %zu%s", done, all, done == all ? "\r\033[K" : "");
}

Status write_bill(const Config& config, const Statement& statement) {
  const auto formats = bill_formats();
  const auto format = std::find_if(formats.begin(), formats.end(), [&](const BillFormat& one) {
    return config.format.empty() || one.name == config.format;
  });
  if (format == formats.end()) return Error{Code::kInternal, "--format: cannot write " + config.format};
  if (!format->has_remarks) {
    if (statement.over_at) std::fprintf(stderr, "Note: %s\n", not_over_text(statement).c_str());
    for (const std::string& remark : statement.remarks) {
      std::fprintf(stderr, "Note: %s\n", clean_text(remark, remark.size()).c_str());
    }
  }
  const std::string text = format->write(statement);
  if (config.bill_output.empty()) return write_to_stdout(text);
  remove_left_temporaries(config.bill_output);
  const Status written = write_file_atomically(config.bill_output, text);
  if (!written.ok()) return Error{written.error().code, "--output: " + written.error().message};
  return ok_status();
}

// The bill of any span. One of which the server has nothing is empty and incomplete, rather than no answer.
Result<Statement> answer_for(const Config& config, const BillPrices& prices, const BillServer& server,
                             const BillSpan& span, const AllocationQuestion& question) {
  BillView view = view_of(config, prices);
  view.by.clear();
  for (std::string_view rest = question.by; !rest.empty();) view.by.emplace_back(take_until(rest, ','));
  view.by.filter = question.filter;
  view.spread = question.spread;
  view.must_exist = false;
  GL_TRY(step, bill_step(config, span));
  auto books = collect_books(ask_server(server), query_of(config, prices, span, step, server));
  if (!books.ok() && books.error().code == Code::kNotFound) {
    BillBooks none;
    none.span = span;
    none.gaps.push_back({"every node", span, books.error().message});
    books = std::move(none);
  }
  if (!books.ok()) return books.error();
  return view_books(*books, view);
}

http::ServerOptions bill_server_options(const Config& config) {
  http::ServerOptions options;
  options.listen_addresses = config.serve_addresses;
  options.listen_setting = "--serve-address";
  options.web_config_file = config.web_config_file;
  options.allowed_hosts = config.allowed_hosts;
  options.limits.answer_timeout = kAnswerTimeout;
  options.on_web_config = log_web_config;
  return options;
}

std::chrono::sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

// Every request to the server has its own span and groups.
Status check_serve(const Config& config) {
  if (config.bill_month || config.bill_from || config.bill_last) {
    return Error{Code::kMalformed, "--serve: every question has its own span; leave out --month, --from and --last"};
  }
  const Config defaults;
  if (config.bill_by != defaults.bill_by || config.bill_spread != defaults.bill_spread || !config.format.empty() ||
      !config.bill_output.empty() || !config.bill_site.empty() || !config.bill_per.empty() || config.allow_gaps) {
    return Error{
        Code::kMalformed,
        "--serve: not together with --by, --spread, --per, --format, --output, --site or --allow-gaps; a question asks "
        "for its own groups, and answers are JSON"};
  }
  return ok_status();
}

Status serve_bills(const Config& config) {
  const sigset_t signals = block_signals({SIGTERM, SIGINT, SIGHUP});
  const SystemClock clock;
  GL_TRY(prices, prices_of(config));
  // By value: an answer that hangs outlives this function.
  auto server = AllocationServer::start(
      bill_server_options(config),
      [config, prices](const BillSpan& span, const AllocationQuestion& question,
                       const std::shared_ptr<const net::Interrupt>& given_up) {
        BillServer asked = server_of(config);
        asked.given_up = given_up;
        return answer_for(config, prices, asked, span, question);
      },
      clock);
  if (!server.ok()) return server.error();
  for (const std::string& address : (*server)->addresses()) {
    log_info("serving", {{"address", address}, {"path", "/allocation"}});
  }
  while (wait_for_signal(signals) == SIGHUP) log_web_config((*server)->reload());
  log_info("stopping");
  (*server)->stop();
  return ok_status();
}

}  // namespace

Status check_bill(const Config& config) {
  if (!config.prometheus_url) {
    return Error{Code::kMalformed, "write whom to ask: --prometheus-url=http://HOST:9090"};
  }
  if (config.co2e_grams_per_kwh && !config.co2e_series.empty()) {
    return Error{Code::kMalformed, "--co2e-series: not together with --co2e-grams-per-kwh"};
  }
  if (config.bill_serve) return check_serve(config);
  if (!config.bill_per.empty()) GL_TRY_STATUS(check_token_groups(config.bill_by));
  GL_TRY(span, bill_span(config, now()));
  GL_TRY_STATUS(bill_step(config, span));
  return ok_status();
}

Status bill_command(const Config& config, const ConfigSources& /*sources*/) {
  if (config.bill_serve) return serve_bills(config);
  const auto at = now();
  GL_TRY(span, bill_span(config, at));
  GL_TRY(step, bill_step(config, span));
  GL_TRY(prices, prices_of(config));
  const BillServer server = server_of(config);
  const BillQuery query = query_of(config, prices, span, step, server);
  GL_TRY(statement, make_statement(ask_server(server), query, view_of(config, prices), show_progress));
  if (!config.bill_per.empty()) GL_TRY_STATUS(add_tokens(query.ask_deduplicated, query, config.bill_by, statement));
  statement.site = config.bill_site;
  statement.over_at = end_to_come(config, at);
  GL_TRY_STATUS(write_bill(config, statement));
  if (statement.complete() || (config.allow_gaps && statement.sum_millijoules() == statement.meter_millijoules)) {
    return ok_status();
  }
  if (statement.gaps.empty()) {
    return Error{Code::kInternal, "the bill is incomplete: its lines do not add up to the meter; please report it"};
  }
  const BillGap& gap = statement.gaps.front();
  return Error{Code::kUnavailable,
               "the bill is incomplete: " + gap.node + " lacks " + time_text(gap.span.begin) + " to " +
                   time_text(gap.span.end) + ": " + gap.why +
                   (statement.gaps.size() > 1 ? "; and " + std::to_string(statement.gaps.size() - 1) + " more" : "") +
                   "; --allow-gaps accepts that"};
}

}  // namespace gpuledger::app
