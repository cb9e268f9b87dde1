{{/* The pod of the DaemonSet, the CronJobs and the test: called with a dict of root, cron, doctor and a CronJob's node. */}}

{{- define "gpu-ledger.flags" -}}
{{- $v := .root.Values -}}
{{- if .cron -}}
- once
- --sample-interval={{ $v.collection.sampleInterval }}
{{- else -}}
- {{ if .doctor }}doctor{{ else }}serve{{ end }}
- --listen-address=:{{ $v.port }}
{{- end }}
{{- if or .cron $v.textfile.enabled }}
- --textfile=/textfile/{{ $v.textfile.name }}
{{- end }}
- --pod-source={{ $v.metadata.source }}
{{- if and (eq $v.metadata.source "none") (not $v.kubelet.podResources) }}
- --no-kubernetes-enabled
{{- end }}
{{- with $v.metadata.podLabels }}
- --pod-labels={{ join "," . }}
{{- end }}
{{- if eq $v.metadata.source "cri" }}
- --cri-socket={{ $v.metadata.criSocket }}
{{- end }}
{{- if and (eq $v.metadata.source "kubelet") $v.kubelet.insecure }}
- --kubelet-insecure
{{- end }}
{{- with $v.gpuResources }}
- --gpu-resources={{ join "," . }}
{{- end }}
{{- with $v.gpu.devices }}
- --gpu-devices={{ join "," . }}
{{- end }}
{{- if $v.hostProc }}
- --proc-root=/host/proc
{{- end }}
{{- if and $v.exactTime.enabled (not .cron) }}
- --exact-time=on
{{- with $v.exactTime.budget }}
- --exact-time-budget={{ . }}
{{- end }}
{{- end }}
{{- if include "gpu-ledger.statePath" . }}
- --state-file=/var/lib/gpu-ledger/books
{{- end }}
{{- range $name, $on := $v.collectors }}
{{- if eq $name "preset" }}
- --collector.preset={{ $on }}
{{- else }}
- --{{ if not $on }}no-{{ end }}collector.{{ $name }}
{{- end }}
{{- end }}
{{- if $v.config }}
- --config=/etc/gpu-ledger/config/config.yaml
{{- end }}
{{- if and (not .cron) (include "gpu-ledger.webSecret" .root) }}
- --web-config-file=/etc/gpu-ledger/web/{{ $v.webConfig.key }}
{{- end }}
- --log-level={{ $v.logLevel }}
- --log-format={{ $v.logFormat }}
{{- range $v.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* A CronJob's pod is new every time, so only the node can keep its books. */}}
{{- define "gpu-ledger.statePath" -}}
{{- if eq .root.Values.state.type "none" -}}
{{- else if or .cron (eq .root.Values.state.type "hostPath") -}}
{{- .root.Values.state.hostPath -}}
{{- else -}}
emptyDir
{{- end -}}
{{- end -}}

{{/* Not empty: the driver is the simulated one, which is unpacked into a file when the program starts. */}}
{{- define "gpu-ledger.simulated" -}}
{{- if or (eq (toString (default dict .Values.config).backend) "sim") (has "--backend=sim" .Values.extraArgs) }}yes{{ end -}}
{{- end -}}

{{/* What has all rights can be denied none: the API server refuses a privileged container that must not gain privileges. */}}
{{- define "gpu-ledger.security" -}}
{{- $context := deepCopy (default dict .Values.securityContext) -}}
{{- if $context.privileged -}}
{{- $context = omit $context "allowPrivilegeEscalation" "capabilities" -}}
{{- else if or .Values.nvidia.migMonitor .Values.exactTime.enabled -}}
{{- $capabilities := default dict $context.capabilities -}}
{{- $added := append (default list $capabilities.add) "SYS_ADMIN" | uniq -}}
{{- $_ := set $context "capabilities" (merge (dict "add" $added) $capabilities) -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{- define "gpu-ledger.env" -}}
{{- range .Values.extraEnv }}
{{- if eq .name "HTTP_PORT" }}
{{- fail "extraEnv: HTTP_PORT has no effect here, because probes and Service must know the port too: set port and service.port" }}
{{- end }}
{{- end -}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: NODE_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
{{- include "gpu-ledger.nvidiaEnv" . }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gpu-ledger.nvidiaEnv" -}}
{{- with .Values.nvidia.visibleDevices }}
- name: NVIDIA_VISIBLE_DEVICES
  value: {{ . | quote }}
{{- end }}
{{- with .Values.nvidia.driverCapabilities }}
- name: NVIDIA_DRIVER_CAPABILITIES
  value: {{ . | quote }}
{{- end }}
{{- if .Values.nvidia.migMonitor }}
- name: NVIDIA_MIG_MONITOR_DEVICES
  value: all
{{- end }}
{{- end -}}

{{- define "gpu-ledger.mounts" -}}
{{- $v := .root.Values -}}
{{- $state := include "gpu-ledger.statePath" . -}}
{{- if $v.kubelet.podResources }}
- {name: pod-resources, mountPath: /var/lib/kubelet/pod-resources, readOnly: true}
{{- end }}
{{- if has $v.metadata.source (list "auto" "pods-api") }}
- {name: pods-api, mountPath: /var/lib/kubelet/pods-api, readOnly: true}
{{- end }}
{{- if eq $v.metadata.source "cri" }}
- {name: runtime, mountPath: {{ dir $v.metadata.criSocket }}, readOnly: true}
{{- end }}
{{- if $v.hostProc }}
- {name: proc, mountPath: /host/proc, readOnly: true}
{{- end }}
{{- if $state }}
- {name: state, mountPath: /var/lib/gpu-ledger}
{{- end }}
{{- if or .cron $v.textfile.enabled }}
- {name: textfile, mountPath: /textfile}
{{- end }}
{{- if include "gpu-ledger.simulated" .root }}
- {name: tmp, mountPath: /tmp}
{{- end }}
{{- if $v.config }}
- {name: config, mountPath: /etc/gpu-ledger/config, readOnly: true}
{{- end }}
{{- if not .cron }}
{{- if include "gpu-ledger.webSecret" .root }}
- {name: web, mountPath: /etc/gpu-ledger/web, readOnly: true}
{{- end }}
{{- if $v.webConfig.tlsSecret }}
- {name: tls, mountPath: /etc/gpu-ledger/tls, readOnly: true}
{{- end }}
{{- end }}
{{- with $v.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Folders, never sockets: a kubelet that starts again makes a new socket. */}}
{{- define "gpu-ledger.volumes" -}}
{{- $v := .root.Values -}}
{{- $state := include "gpu-ledger.statePath" . -}}
{{- if $v.kubelet.podResources }}
- name: pod-resources
  hostPath: {path: {{ $v.kubelet.rootDir }}/pod-resources, type: Directory}
{{- end }}
{{- if has $v.metadata.source (list "auto" "pods-api") }}
- name: pods-api  # kubelets before 1.37 have none
  hostPath: {path: {{ $v.kubelet.rootDir }}/pods-api, type: DirectoryOrCreate}
{{- end }}
{{- if eq $v.metadata.source "cri" }}
- name: runtime
  hostPath: {path: {{ dir $v.metadata.criSocket }}, type: Directory}
{{- end }}
{{- if $v.hostProc }}
- name: proc
  hostPath: {path: /proc, type: Directory}
{{- end }}
{{- if eq $state "emptyDir" }}
- name: state
  emptyDir: {sizeLimit: 64Mi}
{{- else if $state }}
- name: state
  hostPath: {path: {{ $state }}, type: DirectoryOrCreate}
{{- end }}
{{- if or .cron $v.textfile.enabled }}
- name: textfile
  hostPath: {path: {{ include "gpu-ledger.textfileFolder" .root }}, type: DirectoryOrCreate}
{{- end }}
{{- if include "gpu-ledger.simulated" .root }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end }}
{{- if $v.config }}
- name: config
  configMap: {name: {{ include "gpu-ledger.fullname" .root }}}
{{- end }}
{{- if not .cron }}
{{- with include "gpu-ledger.webSecret" .root }}
- name: web
  secret: {secretName: {{ . }}}
{{- end }}
{{- with $v.webConfig.tlsSecret }}
- name: tls
  secret: {secretName: {{ . }}}
{{- end }}
{{- end }}
{{- with $v.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gpu-ledger.podMeta" -}}
labels:
  {{- include "gpu-ledger.labels" . | nindent 2 }}
  {{- with .Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := deepCopy (default dict .Values.podAnnotations) -}}
{{- if .Values.config -}}
{{- $_ := set $annotations "checksum/config" (toYaml .Values.config | sha256sum) -}}
{{- end -}}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "gpu-ledger.pod" -}}
{{- $root := .root -}}
{{- $v := .root.Values -}}
serviceAccountName: {{ include "gpu-ledger.account" $root }}
automountServiceAccountToken: {{ include "gpu-ledger.token" $root }}
hostPID: {{ $v.hostPID }}
hostNetwork: {{ $v.hostNetwork }}
dnsPolicy: {{ default (ternary "ClusterFirstWithHostNet" "ClusterFirst" $v.hostNetwork) $v.dnsPolicy }}
{{- with $v.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $name := list "runtimeClassName" "priorityClassName" }}
{{- with get $v $name }}
{{ $name }}: {{ . }}
{{- end }}
{{- end }}
terminationGracePeriodSeconds: {{ $v.terminationGracePeriodSeconds }}
{{- if .node }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchFields: [{key: metadata.name, operator: In, values: [{{ .node | quote }}]}]
{{- else }}
{{- with ternary (omit (default dict $v.affinity) "nodeAffinity") $v.affinity $v.allNodes }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- range $name := list "imagePullSecrets" "hostAliases" "nodeSelector" "tolerations" "resourceClaims" }}
{{- with get $v $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- if or $v.accounting.enabled $v.initContainers }}
initContainers:
  {{- if $v.accounting.enabled }}
  - name: accounting
    image: {{ include "gpu-ledger.image" $root }}
    imagePullPolicy: {{ $v.image.pullPolicy }}
    args: [accounting, "on"]
    env:
      {{- include "gpu-ledger.nvidiaEnv" $root | trim | nindent 6 }}
      {{- with $v.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with $v.extraVolumeMounts }}
    volumeMounts:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $v.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      readOnlyRootFilesystem: true
      runAsUser: 0
      {{- if (default dict $v.securityContext).privileged }}
      privileged: true  # where the devices are to be had in no other way
      {{- else }}
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL], add: [SYS_ADMIN]}  # the driver asks for it
      {{- end }}
  {{- end }}
  {{- with $v.initContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
containers:
  - name: gpu-ledger
    image: {{ include "gpu-ledger.image" $root }}
    imagePullPolicy: {{ $v.image.pullPolicy }}
    args:
      {{- include "gpu-ledger.flags" . | nindent 6 }}
    env:
      {{- include "gpu-ledger.env" $root | nindent 6 }}
    securityContext:
      {{- include "gpu-ledger.security" $root | nindent 6 }}
    {{- with $v.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if not (or .cron .doctor) }}
    {{- include "gpu-ledger.serving" $root | nindent 4 }}
    {{- end }}
    {{- with include "gpu-ledger.mounts" . | trim }}
    volumeMounts:
      {{- . | nindent 6 }}
    {{- end }}
  {{- if not .doctor }}
  {{- with $v.sidecars }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
{{- with include "gpu-ledger.volumes" . | trim }}
volumes:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "gpu-ledger.serving" -}}
ports:
  - name: metrics
    containerPort: {{ .Values.port }}
    protocol: TCP
    {{- with .Values.hostPort }}
    hostPort: {{ . }}
    {{- end }}
{{- range $name := list "startupProbe" "livenessProbe" "readinessProbe" }}
{{- with get $.Values $name }}
{{ $name }}:
  {{- $probe := deepCopy . }}
  {{- if hasKey $probe "httpGet" }}
  {{- if include "gpu-ledger.closed" $ }}
  {{- $probe = merge (dict "tcpSocket" (dict "port" "metrics")) (omit $probe "httpGet") }}
  {{- else if eq (include "gpu-ledger.scheme" $) "https" }}
  {{- $_ := set $probe.httpGet "scheme" "HTTPS" }}
  {{- end }}
  {{- end }}
  {{- toYaml $probe | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
