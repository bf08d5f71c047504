{{/* What a verifier connects to, for its NetworkPolicy. */}}

{{/* Ports of Redis: those of its URL, and `redis.ports`. Sentinels tell of servers elsewhere; what a Secret's URL says is not known here. */}}
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

{{/* Port of a Control elsewhere: empty where it is this release's own, or none is followed. */}}
{{- define "proofgate.verifier.controlPort" -}}
{{- $url := include "proofgate.verifier.controlUrl" . -}}
{{- if and $url (or (not (include "proofgate.verifier.ownControl" .)) .Values.control.tls.publicIssuer) -}}
{{- $authority := regexReplaceAll "^https?://([^/?#]*).*$" $url "${1}" -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $authority) | default (hasPrefix "https://" $url | ternary "443" "80") -}}
{{- end -}}
{{- end -}}
