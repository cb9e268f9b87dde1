#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer of the preset "fuzz": 10 million inputs each, or as many as fit.
#   tests/fuzz/run.sh [SECONDS [AT_ONCE]]     SECONDS for each, 60 if not given; all at once if not given
# The corpus begins with tests/fuzz/seeds and what make_seeds.py writes, lies in build/fuzz/corpus and is used again; an
# input that breaks something is in build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
out=build/fuzz
for parser in $(grep -rhoE --include='*.h' '\bparse_[a-z0-9_]+\(' src | tr -d '(' | sort -u); do
  grep -q "\`$parser\`" tests/fuzz/README.md || { echo "tests/fuzz/README.md does not name $parser" >&2; exit 1; }
done
mkdir -p $out/found
rm -rf $out/seeds
tests/fuzz/make_seeds.py $out/seeds
# In memory where that is possible: fuzz_push_queue writes thousands of files a second.
TMPDIR=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

mapfile -t names < <(cd tests/fuzz && printf '%s\n' fuzz_*.cc | sed 's/^fuzz_//; s/\.cc$//')
at_once=${2:-${#names[@]}}

fuzz() {
  local name=$1 inputs=() dictionary=tests/fuzz/$1.dict
  [ -f "$dictionary" ] || dictionary=tests/fuzz/common.dict
  for folder in "tests/fuzz/seeds/$name" "$out/seeds/$name"; do
    if [ -d "$folder" ]; then inputs+=("$folder"); fi
  done
  mkdir -p "$out/corpus/$name"
  "$out/tests/fuzz/fuzz_$name" -runs=10000000 -max_total_time="$seconds" -max_len=8192 -timeout=30 -rss_limit_mb=1024 \
    -malloc_limit_mb=128 -print_final_stats=1 -dict="$dictionary" -artifact_prefix="$out/found/$name-" \
    "$out/corpus/$name" "${inputs[@]}" >"$out/$name.log" 2>&1
}

pids=()
for name in "${names[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n || true; done
  fuzz "$name" &
  pids+=($!)
done

failed=no
for i in "${!names[@]}"; do
  log=$out/${names[$i]}.log
  if wait "${pids[$i]}"; then
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    echo "fuzz_${names[$i]}: $(grep '^Done' "$log"), $edges edges"
  else
    tail -n 40 "$log"
    echo "fuzz_${names[$i]}: broken, the input is in $out/found" >&2
    failed=yes
  fi
done
[ $failed = no ]
