// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuledger {

// "0.2.0", as the build says it. In a file of its own, so that a new version rebuilds one object.
const char* version();

}  // namespace gpuledger
