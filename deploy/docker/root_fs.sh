#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All of the image but the program, copied from a Debian or Ubuntu below FROM (this one: /) into OUT.
#   root_fs.sh FROM OUT
# glibc is all that the program and NVIDIA's library need. The small ones beside libc.so.6 are empty shells of libraries
# that became part of it, which NVIDIA's library still names. debian_version is there because NVIDIA's container toolkit
# asks it where libraries belong, and glibc's entry of the package list so that scanners see it.
set -eu
from=${1%/} out=$2
libc=$(cd "$from/usr/lib" && ls -d ./*-linux-gnu*/libc.so.6) libc=/usr/lib/$(basename "$(dirname "$libc")")
mkdir -p "$out/etc" "$out/proc" "$out/sys" "$out/dev" "$out/tmp" "$out/var/lib/gpu-ledger" "$out/var/lib/dpkg/status.d"
chmod 1777 "$out/tmp"
for library in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2; do
  install -D -m 0755 "$from$libc/$library" "$out${libc#/usr}/$library"
done
# The loader is where programs look for it: /lib64 on amd64, /lib on arm64.
loader=$(cd "$from/" && ls lib64/ld-linux-x86-64.so.2 lib/ld-linux-aarch64.so.1 2>/dev/null | head -n 1)
install -D -m 0755 "$from/$loader" "$out/$loader"
cp "$from/etc/debian_version" "$out/etc/"
printf 'root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n' >"$out/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' >"$out/etc/group"
printf 'hosts: files dns\n' >"$out/etc/nsswitch.conf"
dpkg-query --admindir="$from/var/lib/dpkg" --status libc6 >"$out/var/lib/dpkg/status.d/libc6"
