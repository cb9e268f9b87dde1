{{- define "gpu-ledger.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "gpu-ledger.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "gpu-ledger.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "gpu-ledger.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gpu-ledger.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* For objects that belong to the whole cluster: two releases of one name in two namespaces do not meet. */}}
{{- define "gpu-ledger.clusterName" -}}
{{- printf "%s-%s" (include "gpu-ledger.namespace" .) (include "gpu-ledger.fullname" .) -}}
{{- end -}}

{{- define "gpu-ledger.selector" -}}
app.kubernetes.io/name: {{ include "gpu-ledger.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpu-ledger.labels" -}}
{{ include "gpu-ledger.selector" . }}
app.kubernetes.io/component: metrics
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gpu-ledger.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "gpu-ledger.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* As a value of a chart of charts `enabled` is its condition, and this one is not rendered at all. */}}
{{- define "gpu-ledger.isOn" -}}
{{- $older := default dict (get .Values "gpu-process-exporter") -}}
{{- range $name, $on := dict "enabled" .Values.enabled "gpu-process-exporter.enabled" $older.enabled -}}
{{- if and (kindIs "bool" $on) (not $on) -}}
{{- fail (printf "%s: false has no effect on a release of its own: to switch gpu-ledger off, helm uninstall %s" $name $.Release.Name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The second is of an older chart. */}}
{{- define "gpu-ledger.textfileFolder" -}}
{{- default .Values.textfile.directory (default dict .Values.prometheus).textfileCollectorPath -}}
{{- end -}}

{{/* There is no public image, so without a place of yours there is nothing to render. */}}
{{- define "gpu-ledger.image" -}}
{{- $image := .Values.image -}}
{{- $registry := default $image.registry .Values.global.imageRegistry -}}
{{- if not (or $registry $image.repository) -}}
{{- fail "image.registry is not set and there is no public image: build one and push it (deploy/docker/README.md), then add --set image.registry=REGISTRY; for an image that the nodes have already, --set image.repository=gpu-ledger" -}}
{{- end -}}
{{- with $registry }}{{ . }}/{{ end -}}
{{- default "gpu-ledger" $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end -}}

{{/* The rights of each source of names; nothing for those that need none. */}}
{{- define "gpu-ledger.rules" -}}
{{- if has .Values.metadata.source (list "auto" "apiserver") -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- else if eq .Values.metadata.source "kubelet" -}}
- apiGroups: [""]
  resources: [nodes/pods]
  verbs: [get]
{{- end -}}
{{- end -}}

{{- define "gpu-ledger.token" -}}
{{- if kindIs "bool" .Values.serviceAccount.automountServiceAccountToken -}}
{{- .Values.serviceAccount.automountServiceAccountToken -}}
{{- else -}}
{{- ne (include "gpu-ledger.rules" .) "" -}}
{{- end -}}
{{- end -}}

{{/* What the chart writes into the web config; nothing without TLS and passwords. tlsSecret alone is TLS. */}}
{{- define "gpu-ledger.webConfig" -}}
{{- $config := deepCopy (default dict .Values.webConfig.config) -}}
{{- if .Values.webConfig.tlsSecret -}}
{{- $tls := default dict $config.tls_server_config -}}
{{- if not (hasKey $tls "cert") -}}
{{- $files := dict "cert_file" "/etc/gpu-ledger/tls/tls.crt" "key_file" "/etc/gpu-ledger/tls/tls.key" -}}
{{- $_ := set $config "tls_server_config" (merge (deepCopy $tls) $files) -}}
{{- end -}}
{{- end -}}
{{- if $config }}{{ toYaml $config }}{{ end -}}
{{- end -}}

{{- define "gpu-ledger.webSecret" -}}
{{- if .Values.webConfig.existingSecret -}}
{{- .Values.webConfig.existingSecret -}}
{{- else if include "gpu-ledger.webConfig" . -}}
{{- include "gpu-ledger.fullname" . }}-web
{{- end -}}
{{- end -}}

{{- define "gpu-ledger.scheme" -}}
{{- if or .Values.webConfig.tlsSecret (include "gpu-ledger.webConfig" . | fromYaml).tls_server_config }}https{{ else }}http{{ end -}}
{{- end -}}

{{/* Not empty where the kubelet, which has neither a password nor a certificate, gets no answer over HTTP. */}}
{{- define "gpu-ledger.closed" -}}
{{- $config := include "gpu-ledger.webConfig" . | fromYaml -}}
{{- $tls := default dict $config.tls_server_config -}}
{{- if or .Values.webConfig.existingSecret $config.basic_auth_users (hasPrefix "Require" (default "" $tls.client_auth_type)) }}yes{{ end -}}
{{- end -}}
