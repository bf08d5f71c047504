{{/* Renders files/envoy.yaml, a copy of envoy/envoy.yaml, for this release: addresses, TLS to the verifier, health checks of several
verifiers, and the scheme that callers sign. */}}

{{/* Replaces one passage of the text; fails if the text does not contain it. */}}
{{- define "proofgate.envoy.exchanged" -}}
{{- if not (contains .passage .text) -}}
{{- fail (printf "files/envoy.yaml does not hold %q: this chart is broken." .passage) -}}
{{- end -}}
{{- replace .passage .by .text -}}
{{- end -}}

{{- define "proofgate.envoy" -}}
{{- $envoy := .Values.verifier.envoy -}}
{{- $edits := list
  (list "socket_address: { address: 127.0.0.1, port_value: 10000 }" (printf "socket_address: { address: %q, port_value: %d }" $envoy.listenHost (int $envoy.port)))
  (list "scheme_to_overwrite: http }" (printf "scheme_to_overwrite: %s }" $envoy.scheme))
  (list "- name: upstream\n      type: STATIC" "- name: upstream\n      type: STRICT_DNS")
  (list "socket_address: { address: 127.0.0.1, port_value: 8081 }" (printf "socket_address: { address: %q, port_value: %d }" $envoy.upstreamHost (int $envoy.upstreamPort)))
-}}
{{- $pipe := "pipe: { path: /run/proofgate/verifier.sock }" -}}
{{- if eq .Values.verifier.mode "sidecar" -}}
{{- if include "proofgate.verifier.hasSocket" . -}}
{{- $edits = append $edits (list $pipe (printf "pipe: { path: %s/verifier.sock }" .Values.verifier.sidecar.socketDirectory)) -}}
{{- else -}}
{{- $loopback := .Values.verifier.sidecar.loopback -}}
{{- $edits = append $edits (list $pipe (printf "socket_address: { address: %q, port_value: %d }" $loopback.host (int $loopback.port))) -}}
{{- end -}}
{{- else -}}
{{- $host := printf "%s.%s.svc" (include "proofgate.verifier.name" .) .Release.Namespace -}}
{{- $edits = append $edits (list "- name: proofgate\n      type: STATIC" "- name: proofgate\n      type: STRICT_DNS") -}}
{{- $edits = append $edits (list $pipe (printf "socket_address: { address: %s, port_value: %d }" $host (int .Values.verifier.service.port))) -}}
{{- if include "proofgate.tlsGiven" .Values.verifier.tls -}}
{{- $edits = append $edits (list "      #+ " "      ") -}}
{{- $edits = append $edits (list "verifier.shop.example" $host) -}}
{{- $edits = append $edits (list "/etc/envoy/verifier-tls/" (printf "%s/" $envoy.tlsDirectory)) -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.verifier.mode "deployment") .Values.verifier.service.headless -}}
{{- $edits = append $edits (list "      #* " "      ") -}}
{{- end -}}
{{- $text := .Files.Get "files/envoy.yaml" -}}
{{- range $edits -}}
{{- $text = include "proofgate.envoy.exchanged" (dict "text" $text "passage" (first .) "by" (last .)) -}}
{{- end -}}
{{- $text -}}
{{- end -}}
