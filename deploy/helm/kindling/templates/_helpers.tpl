{{- define "kindling.labels" -}}
app.kubernetes.io/name: kindlingd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: profiler
{{- end }}

{{- define "kindling.selector" -}}
app.kubernetes.io/name: kindlingd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kindling.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "kindling.settings" -}}
{{- if or (hasKey .Values.config "socket") (hasKey .Values.config "state_dir") -}}
{{- fail "config.socket and config.state_dir are paths inside the pod: set socketDir and stateDir instead" -}}
{{- end -}}
{{- toYaml .Values.config -}}
{{- end }}

{{- /* before 1.30 an annotation said which AppArmor profile, since then a field does */}}
{{- define "kindling.appArmorField" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}yes{{ end -}}
{{- end }}
