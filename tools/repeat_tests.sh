#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of ./test again and again on a machine that is kept busy: two loops per core run beside them. A test that
# fails here races the clock. Build first: ./test, or cmake --build --preset dev.
#   tools/repeat_tests.sh N [ARGUMENT...]      N rounds; ARGUMENTs are ctest's: -R e2e_push
# Each round says how many tests ran and failed, and which failed; what they said is in build/repeat. The last line has the
# sums. Exits 1 if any failed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ! ${1:-} =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: tools/repeat_tests.sh N [ARGUMENT...]" >&2
  exit 2
fi
rounds=$1
shift
longest=7200  # seconds of a round: then its loops end, whatever became of this script
cores=$(nproc)
out=build/repeat
mkdir -p $out
if [ -d build/parts ]; then export GPU_LEDGER_PARTS=$PWD/build/parts; fi

started=()  # timeout ends what it runs, when it is ended itself
end_started() {
  if [ ${#started[@]} -gt 0 ]; then kill "${started[@]}" 2>/dev/null || true; fi
  started=()
}
trap end_started EXIT
trap 'exit 130' INT TERM HUP

all_ran=0 all_failed=0 all_left_out=0
for ((round = 1; round <= rounds; ++round)); do
  begin=$SECONDS
  for ((i = 0; i < 2 * cores; ++i)); do
    timeout $longest sh -c 'while :; do :; done' &
    started+=($!)
  done
  junit=$PWD/$out/round_$round.xml
  rm -f "$junit"
  timeout $longest ctest --preset dev -j$((6 * cores)) --output-junit "$junit" "$@" >$out/round_$round.log 2>&1 &
  started+=($!)
  wait $! || true  # unlike a program in the foreground it lets the traps run
  end_started
  if [ ! -e "$junit" ]; then
    echo "round $round: ctest did not end, see $out/round_$round.log" >&2
    exit 1
  fi
  read -r ran failed left_out names < <(tools/left_out.py --counts "$junit")
  if [ "$ran" -eq 0 ]; then
    echo "round $round: no tests were found" >&2
    exit 1
  fi
  all_ran=$((all_ran + ran)) all_failed=$((all_failed + failed)) all_left_out=$((all_left_out + left_out))
  echo "round $round: $ran ran, $failed failed, $left_out left out, in $((SECONDS - begin)) s${names:+: $names}"
done
echo "$rounds rounds: $all_ran ran, $all_failed failed, $all_left_out left out"
[ $all_failed -eq 0 ]
