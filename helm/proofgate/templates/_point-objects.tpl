{{/* Objects of an enforcement point's own pods: each takes (dict "root" $ "component" …), for the templates `proofgate.<component>.…`. */}}

{{/* Whether it has pods of its own. */}}
{{- define "proofgate.point.hasPods" -}}
{{- $values := index .root.Values .component -}}
{{- if and $values.enabled (ne (default "" $values.mode) "sidecar") }}true{{ end -}}
{{- end -}}

{{- define "proofgate.point.deployment" -}}
{{- $own := dict "adminPort" 9192 "strategy" (include "proofgate.point.strategy" .) "env" (include "proofgate.point.env" .root) -}}
{{- $_ := set $own "podAnnotations" (printf "checksum/trust: %s" (include "proofgate.point.trustData" . | sha256sum)) -}}
{{- include "proofgate.deployment" (merge $own .) -}}
{{- end -}}

{{- define "proofgate.point.service" -}}
{{- $service := (index .root.Values .component).service -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "proofgate.metadata" . | nindent 2 }}
  {{- with $service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $service.type }}
  {{- if $service.headless }}
  clusterIP: None
  {{- end }}
  selector:
    {{- include "proofgate.selectorLabels" . | nindent 4 }}
  ports:
    {{- include (printf "proofgate.%s.servicePorts" .component) .root | nindent 4 }}
{{- end -}}

{{- define "proofgate.point.trust" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "proofgate.point.trustConfigMap" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "proofgate.labels" . | nindent 4 }}
data:
  {{- include "proofgate.point.trustData" . | nindent 2 }}
{{- end -}}

{{/* Also takes "from", the default peers, and "egressPort", of a further server; each may be missing. */}}
{{- define "proofgate.point.networkPolicy" -}}
{{- $policy := (index .root.Values .component).networkPolicy -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "proofgate.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "proofgate.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress{{ if $policy.restrictEgress }}, Egress{{ end }}]
  ingress:
    - ports:
        {{- range include (printf "proofgate.%s.ports" .component) .root | fromYamlArray }}
        - { port: {{ int .containerPort }}, protocol: TCP }
        {{- end }}
      {{- with $policy.from | default .from }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- with $policy.metricsFrom }}
    - from:
        {{- toYaml . | nindent 8 }}
      ports:
        - { port: 9192, protocol: TCP }
    {{- end }}
  {{- if $policy.restrictEgress }}
  egress:
    - ports:
        - { port: 53, protocol: UDP }
        - { port: 53, protocol: TCP }
    {{- if include "proofgate.redisGiven" .root }}
    - ports:
        {{- range include "proofgate.redisPorts" .root | fromJsonArray }}
        - { port: {{ int . }}, protocol: TCP }
        {{- end }}
    {{- end }}
    {{- if and (include "proofgate.point.ownControl" .) (not .root.Values.control.tls.publicIssuer) }}
    - to:
        - podSelector:
            matchLabels:
              {{- include "proofgate.selectorLabels" (dict "root" .root "component" "control") | nindent 14 }}
      ports:
        - { port: 9193, protocol: TCP }
    {{- end }}
    {{- if not $policy.egress }}
    {{- range compact (list (include "proofgate.point.controlPort" .) .egressPort) }}
    - ports:
        - { port: {{ . }}, protocol: TCP }
    {{- end }}
    {{- end }}
    {{- with $policy.egress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end -}}
