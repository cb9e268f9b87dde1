#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything of a release, for amd64 and arm64, in build/dist/VERSION: tarballs, packages, image, chart, what is inside
# (SBOM), checksums, and a signature where a key is given. Publishes nothing: docs/releasing.md says how.
#   tools/release.sh VERSION [--only=amd64|arm64] [--key=FILE]
# --only leaves the other architecture out. --key is a private key in PEM that openssl can sign with.
set -euo pipefail
cd "$(dirname "$0")/.."
source_tree=$PWD

say() { echo "release: $*"; }
die() { echo "release: $*" >&2; exit 1; }
usage() { echo "release: $* (usage: tools/release.sh VERSION [--only=amd64|arm64] [--key=FILE])" >&2; exit 2; }

version='' key='' architectures=(amd64 arm64)
for argument in "$@"; do
  case $argument in
    --only=amd64 | --only=arm64) architectures=("${argument#--only=}") ;;
    --only=*) usage "no architecture \"${argument#--only=}\"" ;;
    --key=*) key=${argument#--key=} ;;
    -*) usage "unknown argument \"$argument\"" ;;
    *) [ -z "$version" ] || usage "one version only, not also \"$argument\""; version=$argument ;;
  esac
done
[ -n "$version" ] || usage "no version"

# What can be wrong before anything is built.
field() { sed -n "$1" "$2" | head -n 1; }
project=$(field 's/^project(gpu-ledger VERSION \([^ )]*\).*/\1/p' CMakeLists.txt)
[ "$version" = "$project" ] || die "CMakeLists.txt says version $project, not $version"
chart=$(field 's/^appVersion: "\(.*\)"/\1/p' deploy/helm/gpu-ledger/Chart.yaml)
[ "$version" = "$chart" ] || die "deploy/helm/gpu-ledger/Chart.yaml says appVersion $chart, not $version"
grep -qE "^## ${version//./\\.}( |$)" CHANGELOG.md || die "CHANGELOG.md has no section \"## $version\""
if grep -qE "^## ${version//./\\.} \(unreleased\)" CHANGELOG.md; then say "note: CHANGELOG.md calls $version unreleased"; fi
revision=$(git rev-parse --verify HEAD 2>/dev/null) || die "this is no git checkout; a release is made of a commit"
if [ -n "$(git status --porcelain)" ]; then
  say "note: there are changes that are not committed; the source tarball is without them, this is no release of a commit"
  revision+=-dirty
fi
if [ -n "$key" ]; then
  openssl pkey -in "$key" -noout -passin pass: 2>/dev/null || die "--key: $key is not a private key without a passphrase"
fi
for tool in cmake ninja rpmbuild dpkg-shlibdeps openssl python3; do
  command -v $tool >/dev/null || die "$tool is missing; run tools/setup.sh --release"
done
if [[ " ${architectures[*]} " == *" arm64 "* ]]; then
  for tool in aarch64-linux-gnu-g++ qemu-aarch64-static; do
    command -v $tool >/dev/null ||
      die "arm64 cannot be built here, $tool is missing; run tools/setup.sh --release, or leave arm64 out: --only=amd64"
  done
  arm64_root=$(tools/arm64_root.sh) || die "arm64 cannot be built here, see above; to leave it out: --only=amd64"
fi

# The same commit gives the same bytes: one time for everything, names in order, no owner, no umask.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
mkdir -p build/dist
work=$(mktemp -d "$source_tree/build/dist/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
dist=$work/dist
mkdir "$dist"
pack() {  # OUT FOLDER NAME TAR-ARGUMENT...
  local out=$1 folder=$2 name=$3
  shift 3
  tar -C "$folder" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u+rw,go+r,go-w --format=gnu "$@" -cf - "$name" | gzip -9n >"$out"
}
# rpmbuild takes these from its user's folder only.
printf '%%%s\n' 'use_source_date_epoch_as_buildtime 1' 'clamp_mtime_to_source_date_epoch 1' '_buildhost localhost' \
  >"$work/.rpmmacros"

images=()
for architecture in "${architectures[@]}"; do
  say "$architecture: building"
  preset=release root=/ tools='' packaging=()
  if [ "$architecture" = arm64 ]; then
    preset=release-arm64 root=$arm64_root tools=aarch64-linux-gnu-
  fi
  cmake --preset $preset >"$work/log" || { cat "$work/log" >&2; die "$architecture: cmake --preset $preset failed"; }
  cmake --build --preset $preset --target gpu-ledger
  built=build/$preset
  tools/check_release.sh $built/gpu-ledger

  name=gpu-ledger-$version-linux-$architecture
  mkdir "$work/$name"
  ${tools}strip -o "$work/$name/gpu-ledger" $built/gpu-ledger
  tools/sbom.py $built "$work/$name/gpu-ledger" "$version" "$architecture" "$root" >"$dist/$name.cdx.json"
  cp "$dist/$name.cdx.json" "$work/$name/gpu-ledger.cdx.json"
  cp LICENSE README.md CHANGELOG.md docs/gpu-ledger.1 deploy/systemd/* "$work/$name"
  pack "$dist/$name.tar.gz" "$work" "$name"

  if [ "$architecture" = arm64 ]; then  # CPack and dpkg-shlibdeps take this machine for the one that it is for
    glibc=$(grep -aoE "GLIBC_2\.[0-9.]+" $built/gpu-ledger | sort -Vu | tail -n 1)
    packaging=(-D CPACK_DEBIAN_PACKAGE_ARCHITECTURE=arm64 -D CPACK_DEBIAN_PACKAGE_SHLIBDEPS=OFF
      -D "CPACK_DEBIAN_PACKAGE_DEPENDS=libc6 (>= ${glibc#GLIBC_})" -D CPACK_RPM_PACKAGE_ARCHITECTURE=aarch64)
  fi
  HOME=$work cpack --config $built/CPackConfig.cmake -G "DEB;RPM" -B "$work/packages-$architecture" "${packaging[@]}" \
    >"$work/log" 2>&1 || { cat "$work/log" >&2; die "$architecture: cpack failed"; }
  mv "$work/packages-$architecture"/*.{deb,rpm} "$dist"

  deploy/docker/root_fs.sh "$root" "$work/image-$architecture"
  install -D "$work/$name/gpu-ledger" "$work/image-$architecture/usr/bin/gpu-ledger"
  install -D -m 0644 "$dist/$name.cdx.json" "$work/image-$architecture/usr/share/doc/gpu-ledger/gpu-ledger.cdx.json"
  images+=("$architecture=$work/image-$architecture")
done

say "image, chart, sources"
tools/oci.py image "$dist/gpu-ledger-$version-image.tar" "$version" \
  --label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.revision=$revision" \
  "${images[@]}" >"$dist/gpu-ledger-$version-image.digest"
# As `helm package` does it: links followed, what .helmignore names left out.
sed 's,/$,,' deploy/helm/gpu-ledger/.helmignore >"$work/ignore"
pack "$dist/gpu-ledger-$version-chart.tgz" deploy/helm gpu-ledger --dereference --exclude-from="$work/ignore"
tools/oci.py chart "$dist/gpu-ledger-$version-chart.tar" "$version" "$dist/gpu-ledger-$version-chart.tgz" >/dev/null
git archive --prefix="gpu-ledger-$version/" HEAD | gzip -9n >"$dist/gpu-ledger-$version-source.tar.gz"

(cd "$dist" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
if [ -n "$key" ]; then
  openssl dgst -sha256 -sign "$key" -passin pass: -out "$dist/SHA256SUMS.sig" "$dist/SHA256SUMS" ||
    die "--key: openssl cannot sign with $key (an EC or RSA key is needed)"
  openssl pkey -in "$key" -passin pass: -pubout -out "$dist/gpu-ledger-release.pub"
else
  say "note: no --key, so SHA256SUMS is not signed"
fi
rm -rf "build/dist/$version"
mv "$dist" "build/dist/$version"
say "made build/dist/$version:"
(cd "build/dist/$version" && du -h --apparent-size -- *)
