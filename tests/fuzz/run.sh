#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer of the preset "fuzz" at once: 10 million inputs each, or as many as fit.
#   tests/fuzz/run.sh [SECONDS]
# The corpus begins with tests/fuzz/seeds, lies in build/fuzz/corpus and is used again; an input that breaks something is in
# build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
out=build/fuzz
mkdir -p $out/found

names=(cgroup_path device_id proc_stat upstream pod_list watch docker bill_answer pod_proto cri state trace config_yaml
       web_config switch_records)
pids=()
for name in "${names[@]}"; do
  dictionary=()
  if [ -f "tests/fuzz/$name.dict" ]; then dictionary=("-dict=tests/fuzz/$name.dict"); fi
  longest=160
  seeds=()
  if [ -d "tests/fuzz/seeds/$name" ]; then
    longest=2048
    seeds=("tests/fuzz/seeds/$name")
  fi
  mkdir -p "$out/corpus/$name"
  "$out/tests/fuzz/fuzz_$name" -runs=10000000 -max_total_time="$seconds" -max_len="$longest" -timeout=10 -rss_limit_mb=1024 "${dictionary[@]}" \
    -artifact_prefix="$out/found/$name-" "$out/corpus/$name" "${seeds[@]}" >"$out/$name.log" 2>&1 &
  pids+=($!)
done

failed=no
for i in "${!names[@]}"; do
  if wait "${pids[$i]}"; then
    echo "fuzz_${names[$i]}: $(grep '^Done' "$out/${names[$i]}.log")"
  else
    tail -n 40 "$out/${names[$i]}.log"
    echo "fuzz_${names[$i]}: broken, the input is in $out/found" >&2
    failed=yes
  fi
done
[ $failed = no ]
