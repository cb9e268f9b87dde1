#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy with the checks of .clang-tidy over the sources: all of src, or the files that are named.
#   tools/tidy.sh [BUILD] [FILE...]     BUILD: a configured build folder, build/dev unless told
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/dev}
shift || true
files=("$@")
# The compiler of the build is g++: clang does not know two of its flags, and cannot read its precompiled headers.
mkdir -p build/tidy
sed -E 's/ -fno-gnu-unique| --param=[^ ]+| -Winvalid-pch -include [^ ]+//g' "$build/compile_commands.json" >build/tidy/compile_commands.json
if [ ${#files[@]} -eq 0 ]; then  # as they are compiled, in batches; not what protoc and CMake wrote
  mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\?$/\1/p' build/tidy/compile_commands.json |
    grep -E '/src/' | grep -vE '/tests/|/sim/|\.pb\.cc$|/revision\.cc$|_generated_')
fi
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build/tidy --quiet \
  --extra-arg=-Wno-unknown-warning-option 2>/dev/null
