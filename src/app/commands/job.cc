// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <limits>
#include <thread>

#include "app/config/config.h"
#include "app/job/report.h"
#include "app/top/exporter.h"
#include "base/file.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

using std::chrono::milliseconds;

// Shared time is estimated over windows of about a second, so the last joules of a process follow its exit.
constexpr double kSettleSeconds = 3;
constexpr auto kLookAgain = milliseconds(500);

Status check_number(const std::string& job) {
  const auto all_of = [&](auto test) { return std::all_of(job.begin(), job.end(), test); };
  const bool number = all_of([](unsigned char c) { return std::isdigit(c) != 0; });
  const bool sluid = job.starts_with('s') && all_of([](unsigned char c) { return std::isalnum(c) != 0; });
  if (number || sluid) return ok_status();
  return Error{Code::kMalformed, "job: " + in_quotes(job) +
                                     " is not a job number; squeue -o '%A %i' shows the number of an array's task"};
}

Result<top::Exporter> find_job_exporter(const Config& config) {
  if (config.url && config.url->none) return Error{Code::kMalformed, "--url=none: job needs a running exporter"};
  top::Exporter exporter{config.url ? *config.url : local_exporter(config.listen_addresses.front()),
                         config.url_ca_file};
  if (!exporter.url.text.empty()) return exporter;
  return Error{Code::kMalformed,
               "job: the exporter's address cannot be derived from --listen-address; give it with --url"};
}

// With `wait`, reads until the books are some seconds newer than the job's last process. A job that is not found may
// have just begun, so it is also looked for until then.
Result<std::optional<JobReport>> read_job(const top::Exporter& exporter, const std::string& job, Nanoseconds wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  double left = std::numeric_limits<double>::infinity();  // time of the first books without a process of the job
  while (true) {
    GL_TRY(books, top::read_exporter(exporter, {}));
    auto report = report_job(books, job);
    const bool ended = !report || !report->running;
    left = ended ? std::min(left, books.at) : std::numeric_limits<double>::infinity();
    const bool settled = books.at >= left + kSettleSeconds;
    if (settled || std::chrono::steady_clock::now() + kLookAgain > until) return report;
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace

Status check_job(const Config& config) {
  GL_TRY_STATUS(check_number(config.argument));
  GL_TRY_STATUS(find_job_exporter(config));
  return ok_status();
}

Status job_command(const Config& config, const ConfigSources& /*sources*/) {
  GL_TRY(exporter, find_job_exporter(config));
  GL_TRY(report, read_job(exporter, config.argument, config.job_wait));
  if (!report) {
    return Error{Code::kNotFound,
                 exporter.url.text + ": no process of job " + config.argument +
                     " was seen on a GPU there; an ended job is kept for --owner-retention (24h if "
                     "not set), unless more than --max-ended-owners ended after it or --max-series left it out"};
  }
  const auto write = config.format == "json"   ? write_job_json
                     : config.format == "line" ? write_job_line
                                               : write_job_text;
  return write_to_stdout(write(*report, config.price_per_kwh));
}

}  // namespace gpuledger::app
