# Completion of gpu-ledger for bash; made by: gpu-ledger completion bash
_gpu_ledger() {
  local cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} command='' flags words i
  # bash cuts --flag=value at the =, unless the user told it not to.
  local before=''
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $flag == = ]] && ((COMP_CWORD > 1)); then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $cur == --*=* ]]; then
    flag=${cur%%=*} before=$flag= cur=${cur#*=}
  fi
  COMPREPLY=()
  case $flag in
    --record-names) words='hashed plain none' ;;
    --attribution) words='adaptive utilization measured-only' ;;
    --static-power) words='proportional equal separate' ;;
    --exact-time) words='off auto on' ;;
    --backend) words='auto nvml dcgm sim' ;;
    --pod-source) words='auto pods-api apiserver kubelet cri none' ;;
    --collector.preset) words='compatible lean' ;;
    --spread) words='keep use allocation' ;;
    --allocated) words='whole shared' ;;
    --per) words='token' ;;
    --format) words='table csv html focus focus-1.2 focus-1.4 text json line' ;;
    --log-level) words='debug info warn error' ;;
    --log-format) words='text json' ;;
    --textfile|--web-config-file|--push-password-file|--push-bearer-token-file|--push-ca-file|--state-file|--nvml-library|--sim-scenario|--passwd-file|--url-ca-file|--dcgm-library|--dcgm-exporter-file|--pod-resources-socket|--pods-api-socket|--kubelet-ca-file|--cri-socket|--docker-socket|--podman-socket|--prometheus-ca-file|--prometheus-token-file|--prometheus-password-file|--price-list|--output|--config)
      compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    --push-queue-dir|--proc-root|--slurm-job-dir)
      compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
    --listen-address|--metrics-path|--metric-prefix|--max-series|--textfile-mode|--allowed-hosts|--node-name|--pod-name|--pod-namespace|--push-url|--push-interval|--push-queue-size|--push-labels|--push-headers|--sample-interval|--process-scan-interval|--idle-interval|--metric-retention|--owner-retention|--max-exited-processes|--max-ended-owners|--for|--wait|--gpu-idle-power|--exact-time-budget|--state-file-mode|--gpu-devices|--url|--dcgm-address|--dcgm-exporter-url|--pod-labels|--gpu-resources|--kubelet-address|--prometheus-url|--prometheus-headers|--month|--from|--to|--last|--step|--by|--match|--price-per-kwh|--price-per-gpu-hour|--currency|--pue|--co2e-grams-per-kwh|--co2e-series|--site|--serve-address|--query-timeout)
      return ;;
  esac
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$cur")
    return
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      serve|once|top|job|doctor|record|replay|bill|accounting|completion|help|version) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  case $command in
    ''|serve) flags='--listen-address --metrics-path --metric-prefix --max-series --textfile --textfile-mode --textfile-dcgm --no-textfile-dcgm --web-config-file --allowed-hosts --node-name --pod-name --pod-namespace --push-url --push-interval --push-queue-dir --push-queue-size --push-labels --push-headers --push-password-file --push-bearer-token-file --push-ca-file --sample-interval --process-scan-interval --idle-interval --metric-retention --owner-retention --max-exited-processes --max-ended-owners --attribution --static-power --gpu-idle-power --exact-time --exact-time-budget --state-file --state-file-mode --backend --nvml-library --sim-scenario --gpu-devices --proc-root --passwd-file --slurm-job-dir --dcgm-library --dcgm-address --dcgm-embedded --no-dcgm-embedded --dcgm-exporter-url --dcgm-exporter-file --dcgm-pcie-throughput --no-dcgm-pcie-throughput --kubernetes-enabled --no-kubernetes-enabled --pod-source --pod-labels --gpu-resources --pod-resources-socket --pods-api-socket --kubelet-address --kubelet-ca-file --kubelet-insecure --no-kubelet-insecure --cri-socket --docker-socket --podman-socket --collector.preset --collector.process --no-collector.process --collector.process-native --no-collector.process-native --collector.process-info --no-collector.process-info --collector.idle --no-collector.idle --collector.processlist --no-collector.processlist --collector.device --no-collector.device --collector.device-detail --no-collector.device-detail --collector.dcgm --no-collector.dcgm --collector.pod --no-collector.pod --collector.self --no-collector.self --collector.driver-calls --no-collector.driver-calls --collector.dcgm-modern --no-collector.dcgm-modern --config --log-level --log-format --help'; [[ -z $command ]] && words='serve once top job doctor record replay bill accounting completion help version' flags+=' --version' ;;
    once) flags='--metric-prefix --max-series --textfile --textfile-mode --textfile-dcgm --no-textfile-dcgm --node-name --pod-name --pod-namespace --sample-interval --process-scan-interval --metric-retention --owner-retention --max-exited-processes --max-ended-owners --attribution --static-power --gpu-idle-power --exact-time --exact-time-budget --state-file --state-file-mode --backend --nvml-library --sim-scenario --gpu-devices --proc-root --passwd-file --slurm-job-dir --dcgm-library --dcgm-address --dcgm-embedded --no-dcgm-embedded --dcgm-pcie-throughput --no-dcgm-pcie-throughput --kubernetes-enabled --no-kubernetes-enabled --pod-source --pod-labels --gpu-resources --pod-resources-socket --pods-api-socket --kubelet-address --kubelet-ca-file --kubelet-insecure --no-kubelet-insecure --cri-socket --docker-socket --podman-socket --collector.preset --collector.process --no-collector.process --collector.process-native --no-collector.process-native --collector.process-info --no-collector.process-info --collector.idle --no-collector.idle --collector.processlist --no-collector.processlist --collector.device --no-collector.device --collector.device-detail --no-collector.device-detail --collector.dcgm --no-collector.dcgm --collector.pod --no-collector.pod --collector.self --no-collector.self --collector.driver-calls --no-collector.driver-calls --collector.dcgm-modern --no-collector.dcgm-modern --config --log-level --log-format --help' ;;
    top) flags='--listen-address --node-name --sample-interval --process-scan-interval --idle-interval --metric-retention --owner-retention --max-exited-processes --max-ended-owners --batch --no-batch --attribution --static-power --gpu-idle-power --exact-time --exact-time-budget --backend --nvml-library --sim-scenario --gpu-devices --proc-root --passwd-file --slurm-job-dir --url --url-ca-file --dcgm-library --dcgm-address --dcgm-embedded --no-dcgm-embedded --kubernetes-enabled --no-kubernetes-enabled --pod-source --pod-labels --gpu-resources --pod-resources-socket --pods-api-socket --kubelet-address --kubelet-ca-file --kubelet-insecure --no-kubelet-insecure --cri-socket --docker-socket --podman-socket --config --log-level --log-format --help' ;;
    job) flags='--listen-address --wait --url --url-ca-file --price-per-kwh --format --config --log-level --log-format --help' ;;
    doctor) flags='--listen-address --metrics-path --metric-prefix --max-series --textfile --textfile-mode --textfile-dcgm --no-textfile-dcgm --web-config-file --allowed-hosts --node-name --pod-name --pod-namespace --push-url --push-interval --push-queue-dir --push-queue-size --push-labels --push-headers --push-password-file --push-bearer-token-file --push-ca-file --sample-interval --process-scan-interval --idle-interval --metric-retention --owner-retention --max-exited-processes --max-ended-owners --attribution --static-power --gpu-idle-power --exact-time --exact-time-budget --state-file --state-file-mode --backend --nvml-library --sim-scenario --gpu-devices --proc-root --passwd-file --slurm-job-dir --dcgm-library --dcgm-address --dcgm-embedded --no-dcgm-embedded --dcgm-exporter-url --dcgm-exporter-file --dcgm-pcie-throughput --no-dcgm-pcie-throughput --kubernetes-enabled --no-kubernetes-enabled --pod-source --pod-labels --gpu-resources --pod-resources-socket --pods-api-socket --kubelet-address --kubelet-ca-file --kubelet-insecure --no-kubelet-insecure --cri-socket --docker-socket --podman-socket --collector.preset --collector.process --no-collector.process --collector.process-native --no-collector.process-native --collector.process-info --no-collector.process-info --collector.idle --no-collector.idle --collector.processlist --no-collector.processlist --collector.device --no-collector.device --collector.device-detail --no-collector.device-detail --collector.dcgm --no-collector.dcgm --collector.pod --no-collector.pod --collector.self --no-collector.self --collector.driver-calls --no-collector.driver-calls --collector.dcgm-modern --no-collector.dcgm-modern --config --log-level --log-format --help' ;;
    record) flags='--node-name --for --record-names --exact-time --exact-time-budget --backend --nvml-library --sim-scenario --gpu-devices --proc-root --kubernetes-enabled --no-kubernetes-enabled --pod-source --gpu-resources --pod-resources-socket --pods-api-socket --kubelet-address --kubelet-ca-file --kubelet-insecure --no-kubelet-insecure --cri-socket --docker-socket --podman-socket --config --log-level --log-format --help' words=FILE ;;
    replay) flags='--sample-interval --idle-interval --metric-retention --owner-retention --max-exited-processes --max-ended-owners --series --no-series --attribution --static-power --gpu-idle-power --exact-time --config --log-level --log-format --help' words=FILE ;;
    bill) flags='--web-config-file --allowed-hosts --prometheus-url --prometheus-ca-file --prometheus-token-file --prometheus-password-file --prometheus-headers --month --from --to --last --step --by --match --spread --allocated --per --price-per-kwh --price-per-gpu-hour --price-list --currency --pue --co2e-grams-per-kwh --co2e-series --format --output --site --serve --no-serve --serve-address --allow-gaps --no-allow-gaps --query-timeout --config --log-level --log-format --help' ;;
    accounting) flags='--backend --nvml-library --sim-scenario --gpu-devices --config --log-level --log-format --help' words='status on off' ;;
    completion) flags='--help' words='bash zsh fish' ;;
    help) flags='--help' words='serve once top job doctor record replay bill accounting completion help version' ;;
    version) flags='--help' ;;
  esac
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
  elif [[ $words == FILE ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}
complete -F _gpu_ledger gpu-ledger
