{{/* TLS files of a listener. Each takes (dict "tls" … "prefix" …): the prefix is that of its flags, volumes and mounts, such as `http-`. */}}

{{/* Whether it has TLS: takes the tls values. */}}
{{- define "proofgate.tlsGiven" -}}
{{- if has .mode (list "secret" "certManager") }}true{{ end -}}
{{- end -}}

{{- define "proofgate.listener.args" -}}
{{- $flag := printf "--%stls" .prefix -}}
{{- $files := printf "/etc/proofgate/%s" .prefix -}}
{{- if include "proofgate.tlsGiven" .tls }}
- {{ $flag }}-cert-file={{ $files }}tls/tls.crt
- {{ $flag }}-key-file={{ $files }}tls/tls.key
{{- end }}
{{- if include "proofgate.caGiven" .tls.clientCa }}
- {{ $flag }}-client-ca-file={{ $files }}client-ca/ca.crt
{{- end }}
{{- range .tls.clientSans }}
- {{ printf "%s-client-san=%s" $flag . | quote }}
{{- end }}
{{- end -}}

{{- define "proofgate.listener.mounts" -}}
{{- if include "proofgate.tlsGiven" .tls }}
{{ include "proofgate.readOnlyMount" (dict "name" (printf "proofgate-%stls" .prefix) "path" (printf "/etc/proofgate/%stls" .prefix)) }}
{{- end }}
{{- if include "proofgate.caGiven" .tls.clientCa }}
{{ include "proofgate.readOnlyMount" (dict "name" (printf "proofgate-%sclient-ca" .prefix) "path" (printf "/etc/proofgate/%sclient-ca" .prefix)) }}
{{- end }}
{{- end -}}

{{/* Also takes "name", that of the component, and "mode", that of the files. */}}
{{- define "proofgate.listener.volumes" -}}
{{- if include "proofgate.tlsGiven" .tls }}
- name: proofgate-{{ .prefix }}tls
  secret:
    secretName: {{ eq .tls.mode "certManager" | ternary (printf "%s-%stls" .name .prefix) .tls.secretName }}
    defaultMode: {{ .mode }}
{{- end }}
{{- if include "proofgate.caGiven" .tls.clientCa }}
{{ include "proofgate.caVolume" (dict "name" (printf "proofgate-%sclient-ca" .prefix) "ref" .tls.clientCa) }}
{{- end }}
{{- end -}}
