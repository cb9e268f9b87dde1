// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "app/config/config_settings.h"
#include "app/config/config_values.h"
#include "base/duration.h"

namespace gpuledger::app {
namespace {

Result<std::string> same(std::string_view value) {
  return std::string(value);
}

Result<std::string> attribution_of_estimation(std::string_view value) {
  GL_TRY(estimate, parse_bool(value));
  return std::string(estimate ? "adaptive" : "measured-only");
}

// The older exporter listed all processes in every poll. Our default is the longest interval.
Result<std::string> scan_of_poll(std::string_view value) {
  GL_TRY(poll, parse_duration(value));
  return poll < Config{}.process_scan_interval ? std::string(value) : std::string();
}

constexpr OlderName kOlderNames[] = {
    {"HTTP_PORT", true, "listen-address", "--listen-address=:PORT", SettingForm::kValue, parse_port},
    {"POLL_INTERVAL", true, "idle-interval", "--idle-interval", SettingForm::kValue, same},
    {"POLL_INTERVAL", true, "process-scan-interval", "--process-scan-interval, 10s at most", SettingForm::kValue,
     scan_of_poll},
    {"NODE_NAME", true, "node-name", "--node-name", SettingForm::kValue, same},
    {"POD_NAME", true, "pod-name", "--pod-name", SettingForm::kValue, same},
    {"POD_NAMESPACE", true, "pod-namespace", "--pod-namespace", SettingForm::kValue, same},
    {"dcgm-update-frequency", false, "sample-interval", "--sample-interval", SettingForm::kValue, same},
    {"enable-energy-estimation", false, "attribution", "false: --attribution=measured-only, true: adaptive",
     SettingForm::kSwitch, attribution_of_estimation},
    {"gpu.devices", false, "gpu-devices", "--gpu-devices", SettingForm::kList, same},
};

}  // namespace

std::span<const OlderName> older_names() {
  return kOlderNames;
}

const OlderName* find_older_flag(std::string_view name) {
  const auto found = std::find_if(std::begin(kOlderNames), std::end(kOlderNames),
                                  [&](const OlderName& older) { return !older.environment && older.name == name; });
  return found == std::end(kOlderNames) ? nullptr : &*found;
}

}  // namespace gpuledger::app
