{{/* The verifier's container and volumes, for a deployment and for a sidecar. Each takes the root, unless it says otherwise. */}}

{{- define "proofgate.verifier.name" -}}
{{- include "proofgate.componentName" (dict "root" . "component" "verifier") -}}
{{- end -}}

{{- define "proofgate.verifier.trustChecksum" -}}
{{- include "proofgate.point.trustData" (dict "root" . "component" "verifier") | sha256sum -}}
{{- end -}}

{{/* Whether it is a sidecar with a socket, in a volume that it shares with the gateway's container. */}}
{{- define "proofgate.verifier.hasSocket" -}}
{{- if and (eq .Values.verifier.mode "sidecar") (not .Values.verifier.sidecar.loopback.enabled) }}true{{ end -}}
{{- end -}}

{{/* Listen address of a sidecar, `unix:PATH` or HOST:PORT on loopback: takes (dict "root" $ "socket" "verifier.sock" "port" 9191). */}}
{{- define "proofgate.verifier.sidecarAddress" -}}
{{- $sidecar := .root.Values.verifier.sidecar -}}
{{- if include "proofgate.verifier.hasSocket" .root -}}
{{- printf "unix:%s/%s" $sidecar.socketDirectory .socket -}}
{{- else -}}
{{- printf "%s:%d" (contains ":" $sidecar.loopback.host | ternary (printf "[%s]" $sidecar.loopback.host) $sidecar.loopback.host) (int .port) -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.verifier.grpcAddress" -}}
{{- if eq .Values.verifier.mode "sidecar" -}}
{{- include "proofgate.verifier.sidecarAddress" (dict "root" . "socket" "verifier.sock" "port" .Values.verifier.sidecar.loopback.port) -}}
{{- else -}}
{{- printf "%s:9191" .Values.verifier.listenHost -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.verifier.httpAddress" -}}
{{- if eq .Values.verifier.mode "sidecar" -}}
{{- include "proofgate.verifier.sidecarAddress" (dict "root" . "socket" "http.sock" "port" 9195) -}}
{{- else -}}
{{- printf "%s:9195" .Values.verifier.listenHost -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.verifier.args" -}}
{{- $verifier := .Values.verifier -}}
- verifier
- {{ printf "--listen=%s" (include "proofgate.verifier.grpcAddress" .) | quote }}
{{- include "proofgate.listener.args" (dict "tls" $verifier.tls "prefix" "") }}
{{- include "proofgate.verifier.httpArgs" . }}
{{- with include "proofgate.verifier.headlessDrainDelay" . }}
{{- if not (hasKey $verifier.settings "drainDelay") }}
- --drain-delay={{ . }}
{{- end }}
{{- end }}
{{ include "proofgate.point.args" (dict "root" . "component" "verifier") }}
{{- end -}}

{{- define "proofgate.verifier.httpArgs" -}}
{{- $http := .Values.verifier.http -}}
{{- if $http.enabled }}
- {{ printf "--http-listen=%s" (include "proofgate.verifier.httpAddress" .) | quote }}
- --http-profile={{ $http.profile }}
- --http-body={{ $http.body }}
{{- if $http.secret.name }}
- --http-secret-file=/etc/proofgate/http-secret/secret
{{- end }}
{{- include "proofgate.listener.args" (dict "tls" $http.tls "prefix" "http-") }}
{{- range $http.trustedProxies }}
- {{ printf "--http-trusted-proxy=%s" . | quote }}
{{- end }}
{{- if and (eq .Values.verifier.mode "sidecar") (not (include "proofgate.verifier.hasSocket" .)) }}
- --http-trusted-proxy={{ .Values.verifier.sidecar.loopback.host }}/{{ contains ":" .Values.verifier.sidecar.loopback.host | ternary 128 32 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Drain delay behind a headless Service, during which Envoy's health checks move it to other verifiers. Empty otherwise. */}}
{{- define "proofgate.verifier.headlessDrainDelay" -}}
{{- if and (eq .Values.verifier.mode "deployment") .Values.verifier.service.headless -}}
5s
{{- end -}}
{{- end -}}

{{- define "proofgate.verifier.mounts" -}}
{{- $verifier := .Values.verifier -}}
{{ include "proofgate.point.mounts" (dict "root" . "component" "verifier") }}
{{- if include "proofgate.verifier.hasSocket" . }}
- { name: proofgate-socket, mountPath: {{ $verifier.sidecar.socketDirectory | quote }} }
{{- end }}
{{- include "proofgate.listener.mounts" (dict "tls" $verifier.tls "prefix" "") }}
{{- if $verifier.http.enabled }}
{{- include "proofgate.listener.mounts" (dict "tls" $verifier.http.tls "prefix" "http-") }}
{{- if $verifier.http.secret.name }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-http-secret" "path" "/etc/proofgate/http-secret") }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "proofgate.verifier.volumes" -}}
{{- $verifier := .Values.verifier -}}
{{- $me := dict "root" . "component" "verifier" -}}
{{- $listener := dict "name" (include "proofgate.verifier.name" .) "mode" (include "proofgate.point.secretMode" $me) -}}
{{ include "proofgate.point.volumes" $me }}
{{- if include "proofgate.verifier.hasSocket" . }}
- name: proofgate-socket
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
{{- include "proofgate.listener.volumes" (merge (dict "tls" $verifier.tls "prefix" "") $listener) }}
{{- with $verifier.http }}
{{- if .enabled }}
{{- include "proofgate.listener.volumes" (merge (dict "tls" .tls "prefix" "http-") $listener) }}
{{- if .secret.name }}
{{ include "proofgate.secretVolume" (dict "name" "proofgate-http-secret" "secret" .secret.name "key" .secret.key "path" "secret" "mode" $listener.mode) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Ports of the container, and of the Service with its own numbers. */}}
{{- define "proofgate.verifier.ports" -}}
- { name: grpc, containerPort: 9191 }
{{- if .Values.verifier.http.enabled }}
- { name: http, containerPort: 9195 }
{{- end }}
{{- end -}}

{{- define "proofgate.verifier.servicePorts" -}}
{{- $verifier := .Values.verifier -}}
- name: grpc
  port: {{ int $verifier.service.port }}
  targetPort: grpc
  appProtocol: {{ ternary "https" "kubernetes.io/h2c" (eq (include "proofgate.tlsGiven" $verifier.tls) "true") }}
{{- if $verifier.http.enabled }}
- name: http
  port: {{ int $verifier.http.port }}
  targetPort: http
  appProtocol: {{ ternary "https" "http" (eq (include "proofgate.tlsGiven" $verifier.http.tls) "true") }}
{{- end }}
{{- end -}}

{{/*
Seconds that a new verifier must be ready before the next one is replaced. Behind a headless Service Envoy discovers it by DNS, after the
cache time (30 s in a usual CoreDNS) and Envoy's refresh interval (5 s). Until then the verifiers that Envoy knows must run.
*/}}
{{- define "proofgate.verifier.minReadySeconds" -}}
{{- $seconds := .Values.verifier.minReadySeconds -}}
{{- if not (kindIs "invalid" $seconds) -}}
{{- if int $seconds }}{{ int $seconds }}{{ end -}}
{{- else if .Values.verifier.service.headless -}}
40
{{- end -}}
{{- end -}}

{{/*
A native sidecar for the pod of a gateway: starts before Envoy and ends after it. A chart that has this one as a dependency includes
it with this chart's own context: {{ include "proofgate.sidecar" .Subcharts.proofgate }}, below the pod's `initContainers`.
*/}}
{{- define "proofgate.sidecar" -}}
{{- $verifier := .Values.verifier -}}
{{- $sidecar := $verifier.sidecar -}}
- name: {{ $sidecar.name }}
  restartPolicy: Always
  ports:
    - { name: proofgate-admin, containerPort: 9192 }
  {{- include "proofgate.container" (dict "root" . "component" "verifier" "probePort" 9192 "env" (include "proofgate.point.env" .)) | nindent 2 }}
  securityContext:
    {{- include "proofgate.containerSecurity" (merge (dict "runAsUser" $sidecar.runAsUser "runAsGroup" $sidecar.runAsGroup) $verifier.containerSecurityContext) | nindent 4 }}
{{- end -}}

{{/* The sidecar's volumes, below the pod's `volumes`. */}}
{{- define "proofgate.sidecarVolumes" -}}
{{- include "proofgate.verifier.volumes" . -}}
{{- end -}}
