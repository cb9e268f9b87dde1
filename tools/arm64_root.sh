#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's arm64 libraries in a folder of their own, for the compiler that makes arm64 programs here. Prints the folder.
# No root is needed and no package of this machine is touched: the packages are fetched with a package list of their own
# and only unpacked. The folder is made once and kept, until the packages below or Debian's versions are asked for anew
# (remove it, then run this again). It has a package database, so that `dpkg-query --admindir` says what is what.
#   tools/arm64_root.sh
# GPU_LEDGER_FETCH_SECONDS limits the time (0: only what is there). GPU_LEDGER_MIRROR names a mirror of Debian, without its
# folder; else it is the one that this machine's apt uses.
set -euo pipefail
limit=${GPU_LEDGER_FETCH_SECONDS:-600}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpu-ledger-release
# As in tools/setup.sh; base-files has the version of Debian that the image names.
packages=(base-files libc6-dev libstdc++-12-dev libboost1.81-dev libssl-dev libspdlog-dev libfmt-dev libeigen3-dev
  nlohmann-json3-dev libyaml-cpp-dev zlib1g-dev libcrypt-dev libgrpc++-dev libprotobuf-dev libc-ares-dev libabsl-dev
  libsnappy-dev libgtest-dev libgmock-dev)

fail() { echo "arm64_root: $*" >&2; exit 1; }
# shellcheck disable=SC1091
. /etc/os-release
[ "$ID" = debian ] || fail "this is $ID; releases for arm64 are built on Debian (a container with Debian 12 will do)"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $keys ] || fail "no $keys; install debian-archive-keyring"
root=$cache/arm64-$VERSION_CODENAME-$(echo "${packages[@]}" | sha256sum | cut -c1-8)
if [ -e "$root" ]; then echo "$root"; exit; fi
[ "$limit" -gt 0 ] || fail "$root is not there and there is no time to get it"
mirror=${GPU_LEDGER_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | sed -n 's,/debian/$,,p' | sort -u | head -n 1)}
[ -n "$mirror" ] || fail "apt knows no mirror of Debian; name one in GPU_LEDGER_MIRROR"

echo "arm64_root: fetching Debian's arm64 libraries" >&2
mkdir -p "$cache"
work=$(mktemp -d "$cache/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/apt/{lists/partial,archives/partial,etc} "$work"/root/{usr/lib,var/lib/dpkg/info,var/lib/dpkg/updates}
ln -s usr/lib "$work/root/lib"
: >"$work/apt/status"
cat >"$work/apt/sources.list" <<LIST
deb [arch=arm64 signed-by=$keys] $mirror/debian $VERSION_CODENAME main
deb [arch=arm64 signed-by=$keys] $mirror/debian $VERSION_CODENAME-updates main
deb [arch=arm64 signed-by=$keys] $mirror/debian-security $VERSION_CODENAME-security main
LIST
apt_get() {
  timeout "$limit" apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::Etc="$work/apt/etc" \
    -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::State="$work/apt" -o Dir::State::lists="$work/apt/lists" \
    -o Dir::State::status="$work/apt/status" -o Dir::Cache="$work/apt" -o Debug::NoLocking=1 -o APT::Sandbox::User= \
    "$@" >>"$work/log" 2>&1 || fail "apt-get $1 failed: $(tail -n 3 "$work/log" | tr '\n' ' ')"
}
apt_get update
apt_get install --download-only --no-install-recommends "${packages[@]}"

database=$work/root/var/lib/dpkg
echo 1 >"$database/info/format"  # names of lists may have an architecture
for package in "$work"/apt/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -C "$work/root" --extract --keep-directory-symlink --no-same-owner
  name=$(dpkg-deb --field "$package" Package)
  if [ "$(dpkg-deb --field "$package" Multi-Arch)" = same ]; then name+=:arm64; fi
  dpkg-deb --fsys-tarfile "$package" | tar --list | sed -e 's,^\.,,' -e 's,/$,,' -e 's,^$,/.,' >"$database/info/$name.list"
  # The state follows the name, then all that the package says of itself.
  dpkg-deb --field "$package" | sed '/^Package: /a Status: install ok installed' >>"$database/status"
  echo >>"$database/status"
done
# A linker that looks below this folder must not be led out of it.
find "$work/root/usr/lib" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
  ln -sfr "$work/root$target" "$link"
done
mv "$work/root" "$root"
echo "$root"
