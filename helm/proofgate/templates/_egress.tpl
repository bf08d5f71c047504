{{/* Egress ports of an enforcement point, for its NetworkPolicy. */}}

{{/* Redis ports: those of `redis.url`, and `redis.ports`. Servers that Sentinels report, and a URL in a Secret, are unknown here. */}}
{{- define "proofgate.redisPorts" -}}
{{- $redis := .Values.redis -}}
{{- $isSentinel := regexMatch "^rediss?-sentinel:" $redis.url -}}
{{- $ports := list -}}
{{- range $redis.ports }}{{ $ports = append $ports (int .) }}{{ end -}}
{{- if and (not $ports) (or (not $redis.url) $isSentinel) }}{{ $ports = list 6379 }}{{ end -}}
{{- with $redis.url -}}
{{- range regexReplaceAll "^[a-z-]+://([^/?#]*).*$" . "${1}" | splitList "," -}}
{{- $ports = append $ports (regexFind "[0-9]+$" (regexFind ":[0-9]+$" .) | default ($isSentinel | ternary "26379" "6379") | int) -}}
{{- end -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end -}}

{{/* Port of an external Control; empty for this release's own Control or without one: takes (dict "root" … "component" …). */}}
{{- define "proofgate.point.controlPort" -}}
{{- $url := include "proofgate.point.controlUrl" . -}}
{{- if and $url (or (not (include "proofgate.point.ownControl" .)) .root.Values.control.tls.publicIssuer) -}}
{{- include "proofgate.portOf" $url -}}
{{- end -}}
{{- end -}}

{{/* Port of an `http` or `https` URL. */}}
{{- define "proofgate.portOf" -}}
{{- $authority := regexReplaceAll "^https?://([^/?#]*).*$" . "${1}" -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $authority) | default (hasPrefix "https://" . | ternary "443" "80") -}}
{{- end -}}
