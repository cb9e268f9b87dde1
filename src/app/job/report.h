// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/top/books.h"
#include "base/units.h"

namespace gpuledger::app {

// What one node spent for a Slurm job. What is not known is empty.
struct JobReport {
  struct Use {
    Energy alone;             // measured: no other process was on the GPU
    Energy shared;            // estimated
    double error_joules = 0;  // one standard error of `shared`
    std::optional<double> gpu_seconds;
    std::optional<double> memory_peak;  // bytes, the most that a step held on one GPU
    Energy total() const { return alone + shared; }
  };
  struct Step : Use {
    std::string step;
    uint32_t gpu = 0;
  };

  std::string job;
  std::string node;
  std::string account;
  std::string partition;
  std::string uid;
  std::string user_name;
  bool simulated = false;
  double at = 0;  // of the books, seconds since 1970
  bool running = false;
  bool steps_closed = false;    // steps are missing: the exporter has closed their accounts or left them out
  std::optional<double> ended;  // its last process on a GPU, since 1970
  size_t gpus_used = 0;
  // The sum of the steps. Errors of different GPUs are independent. Errors of steps on one GPU are not, so they are
  // added up; the result is an upper bound.
  Use whole;
  std::vector<Step> steps;  // by step and GPU

  // From the prolog's file: the job's start until its last process left the GPUs, or until now. Empty without the file
  // and after a requeue.
  std::optional<double> gpus_given;
  std::optional<double> held_seconds;
  std::optional<double> idle_ratio() const;  // of the given GPUs' time
  std::optional<double> mean_watts() const;
  std::optional<double> kwh_cost(double price_per_kwh) const;  // empty: no price
};

// Empty: these books have no such job.
std::optional<JobReport> report_job(const top::Books& books, const std::string& job);

// For people; one JSON object; words NAME=NUMBER. All end with a newline.
std::string write_job_text(const JobReport& report, double price_per_kwh);
std::string write_job_json(const JobReport& report, double price_per_kwh);
std::string write_job_line(const JobReport& report, double price_per_kwh);

}  // namespace gpuledger::app
