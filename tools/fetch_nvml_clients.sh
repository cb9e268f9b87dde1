#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches real NVML clients into DIR for the tests of the simulated driver: nvidia-ml-py, nvtop, nvitop and gpustat.
# Changes nothing outside DIR: apt works on a private copy of the system's sources with nvtop's component
# (Debian: contrib, Ubuntu: multiverse) added. Does nothing when all are there already. Those of PyPI are the versions below: a new
# one that asks the driver for more must not fail a test that passed yesterday.
set -euo pipefail
pynvml=nvidia-ml-py==13.615.71
monitors=(nvitop==1.7.2 gpustat==1.1.1 psutil==7.2.2 blessed==1.52.0)

if [ $# -ne 1 ]; then
  echo "usage: $0 DIR" >&2
  exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)

fetch_pynvml() {
  [ -e "$dir/pynvml/pynvml.py" ] && return 0
  rm -rf "$dir/pynvml.new"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
    --target "$dir/pynvml.new" $pynvml
  rm -rf "$dir/pynvml" && mv "$dir/pynvml.new" "$dir/pynvml"
}

# Without these the tests of the other two still run.
fetch_monitors() {
  [ -e "$dir/monitors/nvitop" ] && [ -e "$dir/monitors/gpustat" ] && return 0
  rm -rf "$dir/monitors.new"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
    --target "$dir/monitors.new" $pynvml "${monitors[@]}" &&
    rm -rf "$dir/monitors" && mv "$dir/monitors.new" "$dir/monitors"
}

# One-line and deb822 sources alike, with the component added to every entry.
copy_sources() {
  local component=$1 out=$2 file
  mkdir -p "$out"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$file" ] && sed -E "/^deb/ s/\$/ $component/" "$file" >"$out/copy-$(basename "$file" .list).list"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] && sed -E "s/^Components:.*/& $component/" "$file" >"$out/copy-$(basename "$file")"
  done
  return 0
}

private_apt() {
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources" \
    -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none "$@"
}

fetch_nvtop() {
  [ -x "$dir/nvtop/usr/bin/nvtop" ] && return 0
  local component=contrib package
  grep -q '^ID=ubuntu' /etc/os-release && component=multiverse
  work=$(mktemp -d "$dir/apt.XXXXXX")
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs"
  copy_sources "$component" "$work/sources"
  private_apt update
  # The libraries come along so that it runs where they are not installed.
  for package in nvtop libdrm2 libdrm-amdgpu1 libncursesw6 libtinfo6 libudev1 libsystemd0; do
    (cd "$work/debs" && private_apt download "$package") || [ "$package" != nvtop ]
  done
  rm -rf "$dir/nvtop.new"
  for package in "$work"/debs/*.deb; do dpkg -x "$package" "$dir/nvtop.new"; done
  rm -rf "$dir/nvtop" && mv "$dir/nvtop.new" "$dir/nvtop"
  rm -rf "$work"
}

fetch_pynvml
fetch_nvtop
fetch_monitors || echo "nvitop and gpustat are not to be had" >&2
