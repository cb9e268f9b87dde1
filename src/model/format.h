// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuledger {

// Formats of a scrape: text format 0.0.4 or OpenMetrics 1.0.
enum class Format { kText, kOpenMetrics };

}  // namespace gpuledger
