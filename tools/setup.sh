#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian or Ubuntu packages that are missing, and touches nothing when none is.
#   tools/setup.sh --run    what a release build needs
#   tools/setup.sh --test   that, and what the tests run against
#   tools/setup.sh --ci     that, the formatter, the linter, the compiler of the fuzzers and a browser for the page
#   tools/setup.sh --cluster   what the tests run against, container engines and what a kubelet needs
#   tools/setup.sh --slurm     what the tests run against, and a Slurm with its accounting
#   tools/setup.sh --release   what tools/release.sh and the tests of what it makes need
set -euo pipefail

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# Alternatives are separated by |, the preferred one first. Debian's default Boost (1.74) is too old and
# its newer one excludes it, hence the version in the name.
run_packages=(g++ cmake ninja-build "libboost1.83-dev|libboost1.81-dev|libboost1.88-dev" libssl-dev libspdlog-dev
  libfmt-dev libeigen3-dev nlohmann-json3-dev libyaml-cpp-dev zlib1g-dev libcrypt-dev
  libgrpc++-dev libprotobuf-dev protobuf-compiler libsnappy-dev)
test_packages=(libgtest-dev libgmock-dev prometheus prometheus-node-exporter python3 python3-pip python3-yaml openssl curl
  procps ca-certificates zsh fish)
# Real container engines and what a real kubelet needs; Kubernetes itself is built with Go 1.26 where there is one.
cluster_packages=(containerd runc docker.io podman busybox-static iproute2 util-linux debootstrap python3-yaml dpkg-dev
  rpm systemd git)
slurm_packages=(slurm-wlm slurmdbd slurm-wlm-basic-plugins slurm-wlm-mysql-plugin munge mariadb-server iproute2 util-linux)
# The compiler for arm64 brings libraries of its own and leaves this machine's alone; qemu runs what it makes.
release_packages=(git python3 python3-venv openssl rpm dpkg-dev g++-aarch64-linux-gnu qemu-user-static)
ci_packages=(libbenchmark-dev clang-format-14 clang-14 clang-tidy-14 libclang-rt-14-dev)
# Left out where there is no such package: Ubuntu has Chromium as a snap only. Its test says so and is skipped. Not in
# --test, for it is 100 MB to fetch.
ci_extras=(chromium)

mode=${1:---run}
extras=()
case $mode in
  --run) wanted=("${run_packages[@]}") ;;
  --test) wanted=("${run_packages[@]}" "${test_packages[@]}") ;;
  --ci)
    wanted=("${run_packages[@]}" "${test_packages[@]}" "${ci_packages[@]}")
    extras=("${ci_extras[@]}")
    ;;
  --cluster) wanted=("${run_packages[@]}" "${test_packages[@]}" "${cluster_packages[@]}") ;;
  --slurm) wanted=("${run_packages[@]}" "${test_packages[@]}" "${slurm_packages[@]}") ;;
  --release) wanted=("${run_packages[@]}" "${release_packages[@]}") ;;
  *) say "unknown argument \"$mode\" (write --run, --test, --ci, --cluster, --slurm or --release)"; exit 2 ;;
esac

if ! command -v apt-get >/dev/null; then
  die "this is not Debian or Ubuntu; install what these packages hold and try again: ${wanted[*]}"
fi

installed=" $(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | tr '\n' ' ')"
missing=()
for package in "${wanted[@]}" "${extras[@]}"; do
  found=no
  for name in ${package//|/ }; do
    if [[ $installed == *" $name "* ]]; then found=yes; fi
  done
  # Of an extra that this machine's package lists do not know nothing is asked for.
  if [[ " ${extras[*]} " == *" $package "* ]] && [ $found = no ] && [ ${#missing[@]} -eq 0 ]; then
    if [ -z "$(apt-cache madison "$package" 2>/dev/null)" ] || { [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; }; then
      say "no package $package to be had here; the test that needs it is skipped"
      continue
    fi
  fi
  if [ $found = no ]; then missing+=("$package"); fi
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || die "not root and no sudo; as root run: apt-get install ${missing[*]%%|*}"
  as_root=(sudo)
fi

work=$(mktemp -d)
made_policy=no
finish() {
  if [ $made_policy = yes ]; then "${as_root[@]}" rm -f /usr/sbin/policy-rc.d; fi
  rm -rf "$work"
}
trap finish EXIT

apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@" >>"$work/log" 2>&1 && return
  tail -n 15 "$work/log" >&2
  die "apt-get $1 failed (see above); mend it, or install by hand: ${missing[*]%%|*}"
}

say "reading the package lists"
apt_get update

chosen=()
for package in "${missing[@]}"; do
  pick=
  for name in ${package//|/ }; do
    if [ -z "$pick" ] && [ -n "$(apt-cache madison "$name" 2>/dev/null)" ]; then pick=$name; fi
  done
  if [ -z "$pick" ] && [[ " ${extras[*]} " == *" $package "* ]]; then
    say "no package $package here; the test that needs it is skipped"
    continue
  fi
  [ -n "$pick" ] || die "no package ${package//|/ or } in the package lists (Ubuntu: enable \"universe\"; needed: Debian 12, Ubuntu 24.04 or newer)"
  chosen+=("$pick")
done

if [ ${#chosen[@]} -eq 0 ]; then exit 0; fi

# Prometheus and container engines come with services. The tests start their own, so keep the packages' from
# starting now and at the next boot, unless somebody installed and set it up before us.
if [ ! -e /usr/sbin/policy-rc.d ]; then
  printf '#!/bin/sh\nexit 101\n' >"$work/policy-rc.d"
  "${as_root[@]}" install -m 0755 "$work/policy-rc.d" /usr/sbin/policy-rc.d
  made_policy=yes
fi
say "installing ${chosen[*]}"
# --no-remove: never take away what this machine's owner put there (an older Boost, say).
apt_get install --no-install-recommends --no-remove "${chosen[@]}"
for package in prometheus prometheus-node-exporter docker.io containerd podman slurmctld slurmd slurmdbd munge mariadb-server; do
  if [[ " ${chosen[*]} " != *" $package "* ]]; then continue; fi
  for unit in $(dpkg-query -L "$package" | sed -n 's,.*/systemd/system/\([^/]*\.\(service\|socket\|timer\)\)$,\1,p'); do
    "${as_root[@]}" find /etc/systemd/system -path "*.wants/$unit" -delete  # systemctl disable
  done
done
say "done"
