#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the release promises about itself: it needs nothing but a glibc that is not too new, it is small, also in memory,
# hardened, and it runs with nothing beside it, the simulated node included.
set -euo pipefail
program=${1:?usage: tools/check_release.sh PROGRAM}
limit=$((19 * 1000 * 1000))
newest_glibc=2.34  # Ubuntu 22.04 has 2.35, RHEL 9 has 2.34

fail() { echo "release: $*" >&2; exit 1; }

# A program for arm64 is run by an emulator here, with the libraries that it was linked with.
run=() tools=''
if [ "$(uname -m)" != aarch64 ] && readelf -h "$program" | grep -q 'Machine: *AArch64'; then
  run=(qemu-aarch64-static -L "$("$(dirname "$0")/arm64_root.sh")") tools=aarch64-linux-gnu-
fi

foreign=$(readelf -dW "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
  grep -vE '^(ld-linux[-a-z0-9_]*|lib(c|m|dl|rt|pthread|resolv))\.so' || true)
[ -z "$foreign" ] || fail "$program needs libraries that are not glibc's: $foreign"

"$(dirname "$0")/../tests/hardening.sh" "$program" || fail "$program is not hardened"

# Read from the whole file: the simulator that is carried in it counts too.
needed=$(grep -aoE 'GLIBC_2\.[0-9.]+' "$program" | sort -Vu | tail -n 1)
if [ "$(printf '%s\n' "$needed" "GLIBC_$newest_glibc" | sort -V | tail -n 1)" != "GLIBC_$newest_glibc" ]; then
  symbols=$("${tools}objdump" -T "$program" | sed -n "s/.*($needed) *//p" | paste -sd ' ')
  fail "$program needs $needed for ${symbols:-its simulator}, the limit is $newest_glibc: add it to src/base/older_glibc.cc"
fi

alone=$(mktemp -d)
trap 'rm -rf "$alone"' EXIT
"${tools}strip" -o "$alone/gpu-ledger" "$program"
size=$(stat -c %s "$alone/gpu-ledger")
[ "$size" -lt "$limit" ] || fail "$program is $size bytes stripped, the limit is $limit"

version=$("${run[@]}" "$program" --version) || fail "$program --version failed"
# The stripped program alone in a folder, without the build tree and without a variable.
(cd "$alone" && env -i "${run[@]}" ./gpu-ledger once --backend=sim --sample-interval=200ms >metrics) ||
  fail "$program does not run on the simulated node, alone in a folder"
grep -q '^gpu_ledger_device_energy_joules_total' "$alone/metrics" || fail "$program has no GPU on the simulated node"
if [ ${#run[@]} -eq 0 ]; then  # an emulator has memory of its own
  root=$(realpath "$(dirname "$0")/..")
  GPU_LEDGER_BINARY=$(realpath "$program") GPU_LEDGER_SIM=$alone GPU_LEDGER_SOURCE=$root MEMORY_OF=release \
    python3 -B "$root/tests/e2e/memory_test.py" >"$alone/memory" 2>&1 ||
    { cat "$alone/memory" >&2; fail "$program takes more memory than docs/operations.md says"; }
  grep '^memory:' "$alone/memory"
fi
echo "release: $version, $((size / 1000)) kB stripped, needs glibc ${needed#GLIBC_} and nothing else"
