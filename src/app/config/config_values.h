// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// Text of one setting to its value. Every message reads on after the setting's name and a colon, quotes the value and
// says what is allowed.
namespace gpuledger::app {

Result<bool> parse_bool(std::string_view text);

// The place of `text` among `allowed`.
Result<size_t> parse_choice(std::string_view text, std::span<const std::string_view> allowed);

// Watts. 0 and "learned" are none, because 0 was the older exporter's way to say it.
Result<std::optional<Power>> parse_idle_power(std::string_view text);

// A whole number, up to a thousand millions.
Result<uint64_t> parse_count(std::string_view text);

// HTTP_PORT of the older exporter, as a listen address.
Result<std::string> parse_port(std::string_view text);

// The index or UUID of a GPU.
Result<std::string> parse_gpu_device(std::string_view text);

// Starts with '/', is a plain path, and is none of the program's other pages.
Result<std::string> parse_metrics_path(std::string_view text);

// What may begin a metric's name.
Result<std::string> parse_metric_prefix(std::string_view text);

// Rights of a file in octal, "0640": the program itself must be able to read and write it, and nobody runs it.
Result<mode_t> parse_file_mode(std::string_view text);

// How much of every minute: "10%" or "6s".
Result<std::chrono::nanoseconds> parse_duty(std::string_view text);

// "a, b,c" to its parts; empty parts are dropped.
std::vector<std::string> split_list(std::string_view text, char separator = ',');

// "a, b or c", for messages.
std::string join_choices(std::span<const std::string_view> words);

// The word of `known` that `word` was most likely meant to be; empty when none is near.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace gpuledger::app
