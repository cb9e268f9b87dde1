// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuledger {

// "0.2.0", from the build. In its own file, so that a new version rebuilds one object.
const char* version();

}  // namespace gpuledger
