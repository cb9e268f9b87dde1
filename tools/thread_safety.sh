#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clang's -Wthread-safety over src: whether all that a mutex protects (src/base/mutex.h) is touched with the mutex held.
#   tools/thread_safety.sh [BUILD]     BUILD: a build folder with the generated headers, build/dev unless told
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/dev}
if git grep -nE 'std::(recursive_|shared_|timed_)?mutex' -- src ':!src/base/mutex.h'; then
  echo "clang cannot follow these: use Mutex of base/mutex.h" >&2
  exit 1
fi
# Batches (cmake/batches.cmake) are read as one, which is quicker; then the files that are in none.
mapfile -t files < <(find "$build/src" -name 'unity_*_cxx.cxx')
batched=$(cat "${files[@]}" /dev/null | sed -n 's/^#include "\(.*\)"$/\1/p')
while read -r file; do
  grep -qF "/$file" <<<"$batched" || files+=("$file")
done < <(git ls-files -- 'src/*.cc')
# Other warnings are the build's business. A file that clang cannot read is a failure too.
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 clang++-14 -fsyntax-only -std=gnu++20 -Isrc \
  -isystem /usr/include/eigen3 -isystem "$build/src/identity/sources" -DGPU_LEDGER_VERSION='""' -DFMT_HEADER_ONLY=1 \
  -Wno-everything -Werror=thread-safety || exit 1
