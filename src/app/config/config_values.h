// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// Converts the text of a setting to its value. Messages follow the setting's name and a colon, quote the value and say
// what is allowed.
namespace gpuledger::app {

Result<bool> parse_bool(std::string_view text);

// The index of `text` in `allowed`.
Result<size_t> parse_choice(std::string_view text, std::span<const std::string_view> allowed);

// Watts. 0 and "learned" give none: 0 means so in the older exporter.
Result<std::optional<Power>> parse_idle_power(std::string_view text);

// A whole number, up to a billion.
Result<uint64_t> parse_count(std::string_view text);

// Bytes: "256MiB", "1GiB"; 1MiB to 1TiB.
Result<uint64_t> parse_size(std::string_view text);

// "NAME=VALUE" with the name of a label, or of an HTTP header that is not the program's own.
Result<std::pair<std::string, std::string>> parse_label(std::string_view text);
Result<std::pair<std::string, std::string>> parse_header(std::string_view text);

// HTTP_PORT of the older exporter, as a listen address.
Result<std::string> parse_port(std::string_view text);

// The index or UUID of a GPU.
Result<std::string> parse_gpu_device(std::string_view text);

// Starts with '/', is a plain path, and is not another page of the program.
Result<std::string> parse_metrics_path(std::string_view text);

// A valid start of a metric name.
Result<std::string> parse_metric_prefix(std::string_view text);

// File mode in octal, "0640": the program must be able to read and write the file; it is never executable.
Result<mode_t> parse_file_mode(std::string_view text);

// Percent of something, as a share: "0.5%" or "0.5" is 0.005. More than 0.
Result<double> parse_percent(std::string_view text);

// "a, b,c" to its parts; empty parts are dropped.
std::vector<std::string> split_list(std::string_view text, char separator = ',');

// "a, b or c", for messages.
// The words of --format, by command; the first is what is written without it.
inline constexpr std::string_view kBillFormats[] = {"table", "csv", "html", "focus", "focus-1.2", "focus-1.4"};
inline constexpr std::string_view kJobFormats[] = {"text", "json", "line"};

std::string join_choices(std::span<const std::string_view> words);

// The word of `known` that `word` most likely stands for; empty if none is near.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace gpuledger::app
