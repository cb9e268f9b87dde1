#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the build promises of the program's file, read back from it.
#   tests/hardening.sh PROGRAM
set -euo pipefail
program=${1:?usage: tests/hardening.sh PROGRAM}
missing=0
expect() {  # WHAT PATTERN TEXT
  if ! grep -qE "$2" <<<"$3"; then
    echo "hardening: $program has no $1" >&2
    missing=1
  fi
}
header=$(readelf -hW "$program")
segments=$(readelf -lW "$program")
dynamic=$(readelf -dW "$program")
symbols=$(readelf --dyn-syms -W "$program")

expect "address of its own choosing (PIE)" 'Type:.*DYN' "$header"
expect "read-only relocations (RELRO)" 'GNU_RELRO' "$segments"
expect "binding at the start (BIND_NOW)" 'FLAGS.*(BIND_NOW|NOW)' "$dynamic"
expect "stack that cannot be executed" 'GNU_STACK.*RW ' "$segments"
if grep -qE 'LOAD.*RWE' <<<"$segments"; then
  echo "hardening: $program has memory that can be written and executed" >&2
  missing=1
fi
expect "stack protector" '__stack_chk_fail' "$symbols"
expect "checked library calls (_FORTIFY_SOURCE)" '_chk@' "$symbols"
# Other people's archives in a static build may lack the mark, and the linker then leaves it out; so our own code is asked.
case $header in
  *X86-64*) disassemble=objdump mark=endbr64 ;;
  *AArch64*) disassemble=$(command -v aarch64-linux-gnu-objdump || echo objdump) mark='paciasp|bti' ;;
  *) disassemble=true mark='' ;;
esac
if [ "$($disassemble -d --no-show-raw-insn "$program" | head -n 400000 | grep -cE "$mark")" -lt 100 ] && [ -n "$mark" ]; then
  echo "hardening: $program has no marks for indirect branches (cf-protection, branch-protection)" >&2
  missing=1
fi
[ $missing = 0 ] && echo "hardening: $program: PIE, full RELRO, stack protector, fortified calls, no executable stack"
