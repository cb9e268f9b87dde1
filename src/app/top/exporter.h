// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "app/config/exporter_url.h"
#include "app/top/books.h"
#include "base/clock.h"

namespace gpuledger::app::top {

// A running exporter: its books from /api/v1/snapshot.
struct Exporter {
  ExporterUrl url;
  std::string ca_file;  // empty: the distribution's
  Nanoseconds answer_within = std::chrono::seconds(5);
};

// Blocks for answer_within at most, and ends when it is told to stop. The message begins with the address and says what
// to do; it has no password. kNotFound: no program listens there.
Result<Books> read_exporter(const Exporter& exporter, const std::stop_token& stop);

}  // namespace gpuledger::app::top
