#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the parts of the long tests that this machine does not have yet: Kubernetes, Helm, Thanos, roots of other systems.
# Each is made once per machine and kept in ~/.cache. About 20 minutes of two cores from nothing. A part that cannot be had
# is named; the tests that need it are skipped.
cd "$(dirname "$0")/.." || exit
begin=$SECONDS
outcome=0
get() {
  "$@" >/dev/null && return
  echo "get_parts: no ${*: -1}" >&2
  outcome=1
}
export GPU_LEDGER_CLUSTER_BUILD_SECONDS=3000 GPU_LEDGER_FETCH_SECONDS=3000
get tests/cluster/build
for part in helm crds linter debian crane thanos debian11 ubuntu focus1 focus2; do get tests/deploy/fetch $part; done
echo "get_parts: ended after $((SECONDS - begin)) s" >&2
exit $outcome
