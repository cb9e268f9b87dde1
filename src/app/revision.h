// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuledger::app {

// The commit that this program was built from; empty: not known. Written by cmake/revision.cmake into a source of its
// own, so that a new commit rebuilds one object and links one program.
const char* revision();

}  // namespace gpuledger::app
