// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/bill/answer.h"
#include "app/config/exporter_url.h"
#include "base/clock.h"
#include "net/interrupt.h"

namespace gpuledger::app {

// A server with Prometheus' query API: Prometheus, Thanos, Mimir, VictoriaMetrics.
struct BillServer {
  ExporterUrl url;
  std::string ca_file;        // empty: the distribution's
  std::string token_file;     // empty: no bearer token
  std::string password_file;  // empty: the URL's
  std::vector<std::pair<std::string, std::string>> headers = {};
  Nanoseconds answer_within = std::chrono::minutes(1);
  Nanoseconds first_pause = std::chrono::milliseconds(300);  // before the second try; doubled for each further one
  // Whether Thanos makes one series of those of two replicas. The bill chooses by itself: a series by one and a series
  // by the other are not of one scrape, and do not balance.
  bool deduplicate = false;
  uint64_t largest_answer = 256 << 20;  // about 500000 series
  // Raised: nobody waits for the answers. A query under way ends, and no other begins.
  std::shared_ptr<const net::Interrupt> given_up = std::make_shared<net::Interrupt>();
};

// Asks one query for one time.
using BillAsk = std::function<Result<std::vector<BillSeries>>(const std::string& query, std::chrono::sys_seconds at)>;

// Blocks. What may pass (no answer in time, status 429 or 5xx, a partial answer) is tried again a few times. Messages
// begin with the address, without a password, and say what to do. Code::kNotSupported: the answer would be too large,
// for us or for the server; a question for less may be answered. Code::kTimeout if given up.
BillAsk ask_server(BillServer server);

}  // namespace gpuledger::app
