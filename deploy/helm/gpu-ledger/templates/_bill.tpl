{{/* Not the exporter's: DaemonSet, Service and monitors must not take these pods for theirs. */}}
{{- define "gpu-ledger.billSelector" -}}
app.kubernetes.io/name: {{ include "gpu-ledger.name" . | trunc 58 }}-bill
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpu-ledger.billLabels" -}}
{{ include "gpu-ledger.labels" . | fromYaml | merge (include "gpu-ledger.billSelector" . | fromYaml) (dict "app.kubernetes.io/component" "bill") | toYaml }}
{{- end -}}

{{/* What its ConfigMap holds; empty: there is none. */}}
{{- define "gpu-ledger.billFiles" -}}
{{- with .Values.bill.config }}
config.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.bill.priceList }}
prices.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "gpu-ledger.billMounts" -}}
{{- if include "gpu-ledger.billFiles" . }}
- {name: config, mountPath: /etc/gpu-ledger/config, readOnly: true}
{{- end }}
{{- if .Values.bill.prometheusSecret }}
- {name: prometheus, mountPath: /etc/gpu-ledger/prometheus, readOnly: true}
{{- end }}
{{- if include "gpu-ledger.webSecret" . }}
- {name: web, mountPath: /etc/gpu-ledger/web, readOnly: true}
{{- end }}
{{- if .Values.webConfig.tlsSecret }}
- {name: tls, mountPath: /etc/gpu-ledger/tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "gpu-ledger.billVolumes" -}}
{{- if include "gpu-ledger.billFiles" . }}
- name: config
  configMap: {name: {{ include "gpu-ledger.fullname" . }}-bill}
{{- end }}
{{- with .Values.bill.prometheusSecret }}
- name: prometheus
  secret: {secretName: {{ . }}}
{{- end }}
{{- with include "gpu-ledger.webSecret" . }}
- name: web
  secret: {secretName: {{ . }}}
{{- end }}
{{- with .Values.webConfig.tlsSecret }}
- name: tls
  secret: {secretName: {{ . }}}
{{- end }}
{{- end -}}
