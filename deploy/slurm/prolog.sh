#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm's Prolog on a node with GPUs: tells gpu-ledger the account, partition, user and GPUs of the job, in a file that only
# root can write. A failing prolog drains the node and requeues the job, so this one never fails.
# Settings: /etc/default/gpu-ledger-slurm or /etc/sysconfig/gpu-ledger-slurm, see README.md.

trap 'exit 0' EXIT  # also after a syntax error in the settings
for settings in /etc/default/gpu-ledger-slurm /etc/sysconfig/gpu-ledger-slurm; do
  if [ -r "$settings" ]; then . "$settings"; fi
done
folder=${JOB_DIR:-/run/gpu-ledger-jobs}

say() { logger -t gpu-ledger-prolog -- "job ${SLURM_JOB_ID:-?}: $*" 2>/dev/null || :; }

write_file() {
  umask 022
  mkdir -p "$folder" || return 1
  new=$folder/.$SLURM_JOB_ID.new
  # Not echo: some shells' reads backslashes, which a user's name may have.
  printf '%s\n' "account=${SLURM_JOB_ACCOUNT:-}" "partition=${SLURM_JOB_PARTITION:-}" "user=${SLURM_JOB_USER:-}" \
    "uid=${SLURM_JOB_UID:-}" "gpus=${SLURM_JOB_GPUS:-}" "start=$(date +%s)" >"$new" && mv "$new" "$folder/$SLURM_JOB_ID"
}

# A second prolog of one run (a step after the allocation) keeps the start.
case ${SLURM_JOB_ID:-} in
  '' | *[!0-9]*) say "SLURM_JOB_ID is not a job number" ;;
  *) [ -e "$folder/$SLURM_JOB_ID" ] || write_file || say "cannot write $folder/$SLURM_JOB_ID" ;;
esac
exit 0
