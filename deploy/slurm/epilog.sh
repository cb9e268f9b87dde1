#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm's Epilog on a node with GPUs: asks gpu-ledger what the job spent here and writes it to a file, one line of JSON per
# job and node; with JOB_COMMENT=admin also to the job's AdminComment. A failing epilog drains the node, so this one never
# fails and ends within 75 seconds.
# Settings: /etc/default/gpu-ledger-slurm or /etc/sysconfig/gpu-ledger-slurm, see README.md.

trap 'exit 0' EXIT  # also after a syntax error in the settings
for settings in /etc/default/gpu-ledger-slurm /etc/sysconfig/gpu-ledger-slurm; do
  if [ -r "$settings" ]; then . "$settings"; fi
done
folder=${JOB_DIR:-/run/gpu-ledger-jobs}
file=${JOB_FILE:-/var/log/gpu-ledger/jobs.jsonl}
program=${PROGRAM:-/usr/bin/gpu-ledger}
PATH=${PATH:-/usr/bin:/bin}:/usr/sbin:/usr/bin:/sbin:/bin
job=${SLURM_JOB_ID:-}

say() { logger -t gpu-ledger-epilog -- "job ${job:-?}: $*" 2>/dev/null || :; }

report() {  # FORM, and flags
  form=$1
  shift
  timeout -k 2 20 "$program" job "$job" --format="$form" "$@"
}

append() {  # LINE: one at a time, since the epilogs of several jobs may run at once
  umask 022
  mkdir -p "$(dirname "$file")" && (flock -w 5 9 && printf '%s\n' "$1" >&9) 9>>"$file"
}

# A job on several nodes has an epilog on each of them, but one comment: no node's figure is the job's.
comment() {  # TEXT
  nodes=$(timeout -k 2 10 squeue -h -t all -j "$job" -o %D 2>/dev/null | head -n 1)
  if [ "$nodes" != 1 ]; then
    say "no AdminComment: it ran on ${nodes:-an unknown number of} nodes; add up the lines of $file"
  elif ! timeout -k 2 10 sacctmgr -i -Q modify job where jobid="$job" set AdminComment="$1" >/dev/null 2>&1; then
    say "sacctmgr refused the AdminComment"
  fi
}

main() {
  errors=$(mktemp) || { say "no report: no temporary file"; return; }
  # After the last process its last joules are booked within seconds.
  if json=$(report json --wait="${JOB_WAIT:-8s}" 2>"$errors") && line=$(report line 2>"$errors"); then
    say "$line"
    where="{\"slurm_cluster\":\"${SLURM_CLUSTER_NAME:-}\",\"slurm_node\":\"${SLURMD_NODENAME:-}\","
    append "$where${json#?}" || say "cannot write $file"
    if [ "${JOB_COMMENT:-none}" = admin ]; then comment "$line"; fi
  else
    say "no report: $(tail -n 1 "$errors")"
  fi
  rm -f "$errors"
}

case $job in
  '' | *[!0-9]*) say "SLURM_JOB_ID is not a job number" ;;
  *)
    # A job without a GPU of its own is not waited for, unless the site gives out GPUs without Slurm's knowledge.
    if [ -n "${SLURM_JOB_GPUS:-}${CUDA_VISIBLE_DEVICES:-}" ] || [ "${ALL_JOBS:-no}" = yes ]; then main; fi
    rm -f "$folder/$job"
    ;;
esac
exit 0
