#pragma once

#include "app/config/config.h"
#include "base/result.h"

namespace gpuledger::app {

// Each runs to its end. An error is one line for stderr; the program then exits with 1.
Status serve(const Config& config, const ConfigSources& sources);
Status once(const Config& config);
Status record(const Config& config);
Status replay(const Config& config);
Status accounting(const Config& config);
Status top(const Config& config);
Status doctor(const Config& config);

}  // namespace gpuledger::app
