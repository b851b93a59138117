{{- define "offstage.labels" -}}
app.kubernetes.io/name: offstage
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "offstage.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "offstage.environment" -}}
- name: OFFSTAGE_PUBLIC_URL
  value: {{ required "publicUrl must be set, to the address at which people reach the web app" .Values.publicUrl | quote }}
- name: OFFSTAGE_DATA
  value: /var/lib/offstage
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
