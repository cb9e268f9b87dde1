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

{{- define "gpu-ledger.image" -}}
{{- $image := .Values.image -}}
{{- with default $image.registry .Values.global.imageRegistry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
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

{{- define "gpu-ledger.webSecret" -}}
{{- if .Values.webConfig.existingSecret -}}
{{- .Values.webConfig.existingSecret -}}
{{- else if .Values.webConfig.config -}}
{{- include "gpu-ledger.fullname" . }}-web
{{- end -}}
{{- end -}}
