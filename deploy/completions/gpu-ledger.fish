# Completion of gpu-ledger for fish; made by: gpu-ledger completion fish
complete -c gpu-ledger -f
complete -c gpu-ledger -l help -s h -d 'what it can do'
complete -c gpu-ledger -n __fish_use_subcommand -l version -s v -d 'the version and the commit'
complete -c gpu-ledger -n __fish_use_subcommand -a serve -d 'samples, keeps the ledger and serves HTTP'
complete -c gpu-ledger -n __fish_use_subcommand -a once -d 'takes one measurement, prints the metrics or writes --textfile, and exits'
complete -c gpu-ledger -n __fish_use_subcommand -a top -d 'shows a live table'
complete -c gpu-ledger -n __fish_use_subcommand -a job -d 'reports the GPU energy, time and memory of a Slurm job on one node, running or ended'
complete -c gpu-ledger -n __fish_use_subcommand -a doctor -d 'checks the driver, /proc, all sockets and the API server'
complete -c gpu-ledger -n __fish_use_subcommand -a record -d 'records one GPU'\''s driver data to FILE, gzipped if FILE ends in .gz'
complete -c gpu-ledger -n '__fish_seen_subcommand_from record' -F
complete -c gpu-ledger -n __fish_use_subcommand -a replay -d 'computes the ledger of a recording and prints the books as JSON'
complete -c gpu-ledger -n '__fish_seen_subcommand_from replay' -F
complete -c gpu-ledger -n __fish_use_subcommand -a accounting -d 'shows or sets the accounting mode of every GPU, in which the driver keeps statistics of exited processes'
complete -c gpu-ledger -n '__fish_seen_subcommand_from accounting' -a 'status on off'
complete -c gpu-ledger -n __fish_use_subcommand -a completion -d 'prints the completion of commands and flags for a shell'
complete -c gpu-ledger -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
complete -c gpu-ledger -n __fish_use_subcommand -a help -d 'prints what all commands or one of them can do'
complete -c gpu-ledger -n '__fish_seen_subcommand_from help' -a 'serve once top job doctor record replay accounting completion help version'
complete -c gpu-ledger -n __fish_use_subcommand -a version -d 'prints the version and the commit it was built from'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from once record replay accounting completion help version' -l listen-address -x -d 'where to serve HTTP'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from once top job record replay accounting completion help version' -l metrics-path -x -d 'path of the metrics'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l metric-prefix -x -d 'prefix of the process metrics'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l max-series -x -d 'limit of series in one scrape'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l textfile -r -F -d 'also write the metrics to this file, for node_exporter'\''s textfile collector'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l textfile-mode -x -d 'mode of that file'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l textfile-dcgm -d 'add the metrics of /gpu/metrics to the textfile and to the output of once'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-textfile-dcgm
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from once top job record replay accounting completion help version' -l web-config-file -r -F -d 'TLS and basic authentication, in the format of Prometheus'\'' exporter-toolkit'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from once top job record replay accounting completion help version' -l allowed-hosts -x -d 'more host names that browsers may use, besides IP addresses, localhost, names without a dot, this machine'\''s and those of Kubernetes services'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l node-name -x -d 'constant label node on every series'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l pod-name -x -d 'constant label pod on the gpu_idle_* series'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l pod-namespace -x -d 'constant label namespace on the gpu_idle_* series'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record accounting completion help version' -l sample-interval -x -d 'how often energy and utilization are read, 100ms or more'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l process-scan-interval -x -d 'how often all processes and their owners are read'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from once job record accounting completion help version' -l idle-interval -x -d 'how often idleness is judged'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record accounting completion help version' -l metric-retention -x -d 'how long an exited process stays in the metrics, with active 0'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record accounting completion help version' -l owner-retention -x -d 'how long a pod, job, container or service stays in the metrics after its last process'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record accounting completion help version' -l max-exited-processes -x -d 'limit of exited processes in the metrics'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record accounting completion help version' -l max-ended-owners -x -d 'limit of ended pods, jobs, containers and services in the metrics'
complete -c gpu-ledger -n '__fish_seen_subcommand_from record' -l for -x -d 'how long'
complete -c gpu-ledger -n '__fish_seen_subcommand_from replay' -l series -d 'first print the books of every step as lines of JSON'
complete -c gpu-ledger -n '__fish_seen_subcommand_from replay' -l no-series
complete -c gpu-ledger -n '__fish_seen_subcommand_from job' -l wait -x -d 'wait until the job'\''s processes have left the GPUs and their last joules are booked, but no longer than this'
complete -c gpu-ledger -n '__fish_seen_subcommand_from job' -l format -x -a 'text json line' -d 'text'
complete -c gpu-ledger -n '__fish_seen_subcommand_from job' -l price-per-kwh -x -d 'price of a kWh, for the cost of the energy'
complete -c gpu-ledger -n '__fish_seen_subcommand_from top' -l batch -d 'print the table once and exit'
complete -c gpu-ledger -n '__fish_seen_subcommand_from top' -l no-batch
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record accounting completion help version' -l attribution -x -a 'adaptive utilization measured-only' -d 'who pays for shared time'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record accounting completion help version' -l static-power -x -a 'proportional equal separate' -d 'who pays for the idle watts while processes exist'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record accounting completion help version' -l gpu-idle-power -x -d 'fixed idle power of every GPU'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job accounting completion help version' -l exact-time -x -a 'off auto on' -d 'read the driver'\''s trace, which process is on the GPU to the microsecond'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job replay accounting completion help version' -l exact-time-duty -x -d 'share of every minute that is traced'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l state-file -r -F -d 'keep the counters across restarts in FILE and FILE.recent'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l state-file-mode -x -d 'mode of those two files'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job replay completion help version' -l backend -x -a 'auto nvml dcgm sim' -d 'auto, nvml, dcgm'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job replay completion help version' -l nvml-library -r -F -d 'the driver'\''s library, if not the loader'\''s libnvidia-ml.so.1'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job replay completion help version' -l sim-scenario -r -F -d 'with --backend=sim'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job replay completion help version' -l gpu-devices -x -d 'the GPUs to watch'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l proc-root -x -a '(__fish_complete_directories)' -d 'where the host'\''s /proc is mounted'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l passwd-file -r -F -d 'the host'\''s passwd, for names of users'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l slurm-job-dir -x -a '(__fish_complete_directories)' -d 'where the site'\''s Slurm prolog writes account and partition of each job'
complete -c gpu-ledger -n '__fish_seen_subcommand_from top job' -l url -x -d 'show the books of the exporter that serves there'
complete -c gpu-ledger -n '__fish_seen_subcommand_from top job' -l url-ca-file -r -F -d 'CA of that exporter'\''s certificate, or the certificate itself'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l dcgm-library -r -F -d 'with --backend=dcgm'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l dcgm-address -x -d 'with --backend=dcgm'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l dcgm-embedded -d 'with --backend=dcgm'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l no-dcgm-embedded
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from once top job record replay accounting completion help version' -l dcgm-exporter-url -x -d 'add-on mode'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from once top job record replay accounting completion help version' -l dcgm-exporter-file -r -F -d 'the same from the file of the first dcgm-exporter, /run/prometheus/dcgm.prom'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l dcgm-pcie-throughput -d 'read dcgm_pcie_*_throughput also from GPUs before Hopper'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-dcgm-pcie-throughput
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l kubernetes-enabled -d 'find pods'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l no-kubernetes-enabled
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l pod-source -x -a 'auto pods-api apiserver kubelet cri none' -d 'where pod names come from'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l pod-labels -x -d 'pod labels to put on gpu_ledger_pod_info'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l gpu-resources -x -d 'more resources that are GPUs, beside nvidia.com/gpu and nvidia.com/mig-*'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l pod-resources-socket -r -F -d 'the kubelet'\''s pod-resources socket'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l pods-api-socket -r -F -d 'the kubelet'\''s Pods API socket, since Kubernetes 1.37'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l kubelet-address -x -d 'with --pod-source=kubelet'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l kubelet-ca-file -r -F -d 'CA of the kubelet'\''s certificate'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l kubelet-insecure -d 'do not check the kubelet'\''s certificate'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l no-kubelet-insecure
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l cri-socket -r -F -d 'with --pod-source=cri'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l docker-socket -r -F -d 'docker'\''s socket, for names of containers'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from job record replay accounting completion help version' -l podman-socket -r -F -d 'the same for podman'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.preset -x -a 'compatible lean' -d 'which collectors are on if they are not given'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.process -d 'my_gpu_process_*, or --metric-prefix'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.process
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.process-native -d 'gpu_ledger_process_*'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.process-native
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.process-info -d 'gpu_ledger_process_*'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.process-info
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.idle -d 'gpu_idle_*'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.idle
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.processlist -d 'gpu_process_*'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.processlist
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.device -d 'gpu_ledger_device_*'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.device
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.dcgm -d 'dcgm_* on /gpu/metrics'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.dcgm
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.pod -d 'gpu_ledger_pod_* and the other owners'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.pod
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.self -d 'gpu_ledger_build_info and the program'\''s own state'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.self
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.driver-calls -d 'gpu_ledger_driver_call_duration_seconds'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.driver-calls
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l collector.dcgm-modern -d 'DCGM_FI_* on /gpu/metrics'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from top job record replay accounting completion help version' -l no-collector.dcgm-modern
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from completion help version' -l config -r -F -d 'YAML file with the same names'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from completion help version' -l log-level -x -a 'debug info warn error' -d 'debug, info, warn or error'
complete -c gpu-ledger -n 'not __fish_seen_subcommand_from completion help version' -l log-format -x -a 'text json' -d 'text or json'
