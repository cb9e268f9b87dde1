#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which lines of src the unit, golden and property tests run. Prints a table by file and the sum.
#   tools/coverage.sh [REGEX]     only the tests whose names match
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v gcovr >/dev/null; then
  echo "coverage: gcovr is missing (package gcovr)" >&2
  exit 1
fi
cmake --preset coverage >/dev/null
cmake --build --preset coverage
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage -j$((6 * $(nproc))) -R "${1:-.}" -LE 'e2e|accuracy|containers|fleet|soak|bench' --output-on-failure
gcovr --root . --filter 'src/' --exclude-throw-branches --object-directory build/coverage \
  --html-details build/coverage/index.html --txt --print-summary
echo "coverage: line by line in build/coverage/index.html"
