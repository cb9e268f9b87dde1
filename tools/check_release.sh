#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the release promises about itself: it needs nothing but glibc, it is small, hardened, and it starts.
set -euo pipefail
program=${1:?usage: tools/check_release.sh PROGRAM}
limit=$((15 * 1000 * 1000))

fail() { echo "release: $*" >&2; exit 1; }

foreign=$(ldd "$program" | grep -vE 'linux-vdso\.so|ld-linux[-a-z0-9_]*\.so|lib(c|m|dl|rt|pthread|resolv)\.so' || true)
[ -z "$foreign" ] || fail "$program needs libraries that are not glibc's: $foreign"

"$(dirname "$0")/../tests/hardening.sh" "$program" || fail "$program is not hardened"

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$program"
size=$(stat -c %s "$stripped")
[ "$size" -lt "$limit" ] || fail "$program is $size bytes stripped, the limit is $limit"

version=$("$program" --version) || fail "$program --version failed"
"$program" once --backend=sim --sample-interval=200ms >/dev/null || fail "$program does not run on the simulated node"
newest=$(objdump -T "$program" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
echo "release: $version, $((size / 1000)) kB stripped, needs glibc ${newest#GLIBC_} and nothing else"
