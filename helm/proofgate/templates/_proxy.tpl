{{/* The container and volumes of the reverse proxy. Each takes the root. */}}

{{- define "proofgate.proxy.args" -}}
{{- $proxy := .Values.proxy -}}
{{- $upstream := $proxy.upstream -}}
- proxy
- {{ printf "--listen=%s:8443" $proxy.listenHost | quote }}
{{- include "proofgate.listener.args" (dict "tls" $proxy.tls "prefix" "") }}
- {{ printf "--upstream=%s" $upstream.url | quote }}
{{- with $upstream.host }}
- {{ printf "--upstream-host=%s" . | quote }}
{{- end }}
{{- with $upstream.serverName }}
- {{ printf "--upstream-server-name=%s" . | quote }}
{{- end }}
{{- if include "proofgate.caGiven" $upstream.ca }}
- --upstream-ca-file=/etc/proofgate/upstream-ca/ca.crt
{{- end }}
{{- if $upstream.clientSecretName }}
- --upstream-cert-file=/etc/proofgate/upstream-tls/tls.crt
- --upstream-key-file=/etc/proofgate/upstream-tls/tls.key
{{- end }}
- --spool-dir=/var/spool/proofgate
{{ include "proofgate.point.args" (dict "root" . "component" "proxy") }}
{{- end -}}

{{- define "proofgate.proxy.mounts" -}}
{{- $proxy := .Values.proxy -}}
{{ include "proofgate.point.mounts" (dict "root" . "component" "proxy") }}
- { name: proofgate-spool, mountPath: /var/spool/proofgate }
{{- include "proofgate.listener.mounts" (dict "tls" $proxy.tls "prefix" "") }}
{{- if include "proofgate.caGiven" $proxy.upstream.ca }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-upstream-ca" "path" "/etc/proofgate/upstream-ca") }}
{{- end }}
{{- if $proxy.upstream.clientSecretName }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-upstream-tls" "path" "/etc/proofgate/upstream-tls") }}
{{- end }}
{{- end -}}

{{- define "proofgate.proxy.volumes" -}}
{{- $proxy := .Values.proxy -}}
{{- $me := dict "root" . "component" "proxy" -}}
{{- $listener := dict "name" (include "proofgate.componentName" $me) "mode" (include "proofgate.point.secretMode" $me) -}}
{{ include "proofgate.point.volumes" $me }}
- name: proofgate-spool
  emptyDir:
    sizeLimit: {{ $proxy.spool.sizeLimit }}
{{- include "proofgate.listener.volumes" (merge (dict "tls" $proxy.tls "prefix" "") $listener) }}
{{- with $proxy.upstream }}
{{- if include "proofgate.caGiven" .ca }}
{{ include "proofgate.caVolume" (dict "name" "proofgate-upstream-ca" "ref" .ca) }}
{{- end }}
{{- with .clientSecretName }}
- name: proofgate-upstream-tls
  secret:
    secretName: {{ . }}
    defaultMode: {{ $listener.mode }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "proofgate.proxy.ports" -}}
- { name: {{ include "proofgate.proxy.scheme" . }}, containerPort: 8443 }
{{- end -}}

{{- define "proofgate.proxy.servicePorts" -}}
{{- $scheme := include "proofgate.proxy.scheme" . -}}
- { name: {{ $scheme }}, port: {{ int .Values.proxy.service.port }}, targetPort: {{ $scheme }}, appProtocol: {{ $scheme }} }
{{- end -}}

{{- define "proofgate.proxy.scheme" -}}
{{- ternary "https" "http" (eq (include "proofgate.tlsGiven" .Values.proxy.tls) "true") -}}
{{- end -}}
