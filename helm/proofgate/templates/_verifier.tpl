{{/* The verifier's container and volumes, for a deployment and for a sidecar. */}}

{{- define "proofgate.verifier.name" -}}
{{- include "proofgate.componentName" (dict "root" . "component" "verifier") -}}
{{- end -}}

{{- define "proofgate.redisGiven" -}}
{{- if or .Values.redis.url .Values.redis.urlSecret.name }}true{{ end -}}
{{- end -}}

{{/* Whether the verifier uses this release's Control. */}}
{{- define "proofgate.verifier.ownControl" -}}
{{- if and .Values.control.enabled (not .Values.verifier.source.control.url) }}true{{ end -}}
{{- end -}}

{{/* URL of the verifier's Control; empty without one. */}}
{{- define "proofgate.verifier.controlUrl" -}}
{{- if include "proofgate.verifier.ownControl" . -}}
{{- include "proofgate.control.verifierUrl" . -}}
{{- else -}}
{{- .Values.verifier.source.control.url -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.verifier.controlCa" -}}
{{- include "proofgate.control.ca" (dict "root" . "given" .Values.verifier.source.control.ca "own" (include "proofgate.verifier.ownControl" .)) -}}
{{- end -}}

{{- define "proofgate.verifier.tlsSecret" -}}
{{- if eq .Values.verifier.tls.mode "certManager" -}}
{{- include "proofgate.verifier.name" . }}-tls
{{- else -}}
{{- .Values.verifier.tls.secretName -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.verifier.tlsGiven" -}}
{{- if has .Values.verifier.tls.mode (list "secret" "certManager") }}true{{ end -}}
{{- end -}}

{{- define "proofgate.verifier.trustConfigMap" -}}
{{- default (printf "%s-trust" (include "proofgate.verifier.name" .)) .Values.verifier.trust.existingConfigMap -}}
{{- end -}}

{{/* Contents of the chart's own ConfigMap of keys. A name may be in both lists, with one content. */}}
{{- define "proofgate.verifier.trustData" -}}
{{- merge (dict) .Values.verifier.trust.bundleKeys .Values.verifier.trust.freshnessKeys | toYaml -}}
{{- end -}}

{{- define "proofgate.verifier.trustChecksum" -}}
{{- include "proofgate.verifier.trustData" . | sha256sum -}}
{{- end -}}

{{/* Whether it is a sidecar with a socket, in a volume that it shares with the gateway's container. */}}
{{- define "proofgate.verifier.hasSocket" -}}
{{- if and (eq .Values.verifier.mode "sidecar") (not .Values.verifier.sidecar.loopback.enabled) }}true{{ end -}}
{{- end -}}

{{/* Listen address of a sidecar: `unix:PATH`, or HOST:PORT on loopback. */}}
{{- define "proofgate.verifier.sidecarAddress" -}}
{{- $sidecar := .Values.verifier.sidecar -}}
{{- if include "proofgate.verifier.hasSocket" . -}}
{{- printf "unix:%s/verifier.sock" $sidecar.socketDirectory -}}
{{- else -}}
{{- printf "%s:%d" (contains ":" $sidecar.loopback.host | ternary (printf "[%s]" $sidecar.loopback.host) $sidecar.loopback.host) (int $sidecar.loopback.port) -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.verifier.args" -}}
{{- $verifier := .Values.verifier -}}
{{- $trust := $verifier.trust -}}
- verifier
- {{ printf "--auth-site=%s" $verifier.authSite | quote }}
- --state-dir=/var/lib/proofgate
{{- if eq $verifier.mode "sidecar" }}
- {{ printf "--listen=%s" (include "proofgate.verifier.sidecarAddress" .) | quote }}
{{- else }}
- {{ printf "--listen=%s:9191" $verifier.listenHost | quote }}
{{- end }}
- {{ printf "--admin-listen=%s:9192" $verifier.listenHost | quote }}
{{- range (concat (keys $trust.bundleKeys | sortAlpha) $trust.bundleKeyFiles) }}
- {{ printf "--bundle-key=/etc/proofgate/trust/%s" . | quote }}
{{- end }}
{{- range (concat (keys $trust.freshnessKeys | sortAlpha) $trust.freshnessKeyFiles) }}
- {{ printf "--freshness-key=/etc/proofgate/trust/%s" . | quote }}
{{- end }}
{{- with include "proofgate.verifier.controlUrl" . }}
- {{ printf "--control-url=%s" . | quote }}
- --control-token-file=/etc/proofgate/control/token
{{- end }}
{{- if include "proofgate.verifier.followsWithCa" . }}
- --control-ca-file=/etc/proofgate/control-ca/ca.crt
{{- end }}
{{- if $verifier.source.volume }}
- --bundle=/etc/proofgate/bundle
{{- end }}
{{- if include "proofgate.verifier.tlsGiven" . }}
- --tls-cert-file=/etc/proofgate/tls/tls.crt
- --tls-key-file=/etc/proofgate/tls/tls.key
{{- end }}
{{- if include "proofgate.caGiven" $verifier.tls.clientCa }}
- --tls-client-ca-file=/etc/proofgate/client-ca/ca.crt
{{- end }}
{{- range $verifier.tls.clientSans }}
- {{ printf "--tls-client-san=%s" . | quote }}
{{- end }}
{{- include "proofgate.verifier.replayArgs" . }}
{{- with include "proofgate.verifier.headlessDrainDelay" . }}
{{- if not (hasKey $verifier.settings "drainDelay") }}
- --drain-delay={{ . }}
{{- end }}
{{- end }}
{{- include "proofgate.settingArgs" $verifier.settings }}
{{- end -}}

{{/*
A URL from a Secret is passed in PROOFGATE_REPLAY, because every user of the node can read arguments. Its content is unknown here. Because of
--redis-timeout, set to its default, the program rejects `memory`, with which several verifiers would not share a store.
*/}}
{{- define "proofgate.verifier.replayArgs" -}}
{{- $redis := .Values.redis -}}
{{- if $redis.url }}
- {{ printf "--replay=%s" $redis.url | quote }}
{{- else if not $redis.urlSecret.name }}
- --replay=memory
{{- end }}
{{- if include "proofgate.redisGiven" . }}
{{- if not (hasKey .Values.verifier.settings "redisTimeout") }}
- --redis-timeout=100ms
{{- end }}
{{- if include "proofgate.caGiven" $redis.ca }}
- --redis-ca-file=/etc/proofgate/redis-ca/ca.crt
{{- end }}
{{- with $redis.sentinel.user }}
- {{ printf "--redis-sentinel-user=%s" . | quote }}
{{- end }}
{{- if $redis.sentinel.passwordSecret.name }}
- --redis-sentinel-password-file=/etc/proofgate/sentinel/password
{{- end }}
{{- end }}
{{- end -}}

{{- define "proofgate.verifier.env" -}}
{{- with .Values.redis.urlSecret }}
{{- if .name }}
- name: PROOFGATE_REPLAY
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key | quote }}
{{- end }}
{{- end }}
{{- with .Values.verifier.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Drain delay behind a headless Service, during which Envoy's health checks move it to other verifiers. Empty otherwise. */}}
{{- define "proofgate.verifier.headlessDrainDelay" -}}
{{- if and (eq .Values.verifier.mode "deployment") .Values.verifier.service.headless -}}
5s
{{- end -}}
{{- end -}}

{{/* True when the CA certificates for Control come from a ConfigMap or Secret. */}}
{{- define "proofgate.verifier.followsWithCa" -}}
{{- if include "proofgate.verifier.controlUrl" . -}}
{{- include "proofgate.caGiven" (include "proofgate.verifier.controlCa" . | fromYaml) -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.verifier.mounts" -}}
{{- $verifier := .Values.verifier -}}
- { name: proofgate-state, mountPath: /var/lib/proofgate }
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-trust" "path" "/etc/proofgate/trust") }}
{{- if include "proofgate.verifier.hasSocket" . }}
- { name: proofgate-socket, mountPath: {{ $verifier.sidecar.socketDirectory | quote }} }
{{- end }}
{{- if include "proofgate.verifier.controlUrl" . }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-control" "path" "/etc/proofgate/control") }}
{{- end }}
{{- if include "proofgate.verifier.followsWithCa" . }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-control-ca" "path" "/etc/proofgate/control-ca") }}
{{- end }}
{{- if $verifier.source.volume }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-bundle" "path" "/etc/proofgate/bundle") }}
{{- end }}
{{- if include "proofgate.verifier.tlsGiven" . }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-tls" "path" "/etc/proofgate/tls") }}
{{- end }}
{{- if include "proofgate.caGiven" $verifier.tls.clientCa }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-client-ca" "path" "/etc/proofgate/client-ca") }}
{{- end }}
{{- if include "proofgate.redisGiven" . }}
{{- if include "proofgate.caGiven" .Values.redis.ca }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-redis-ca" "path" "/etc/proofgate/redis-ca") }}
{{- end }}
{{- if .Values.redis.sentinel.passwordSecret.name }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-sentinel" "path" "/etc/proofgate/sentinel") }}
{{- end }}
{{- end }}
{{- with $verifier.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Modes: 288 is 0440, for the group of the chart's own pod. The group of a sidecar's pod is unknown, so it gets 292 (0444), in a volume that
only the sidecar mounts.
*/}}
{{- define "proofgate.verifier.volumes" -}}
{{- $verifier := .Values.verifier -}}
{{- $mode := eq $verifier.mode "sidecar" | ternary 292 288 -}}
- name: proofgate-state
  {{- if $verifier.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ default (include "proofgate.verifier.name" .) $verifier.persistence.existingClaim }}
  {{- else }}
  emptyDir: {}
  {{- end }}
- name: proofgate-trust
  configMap:
    name: {{ include "proofgate.verifier.trustConfigMap" . }}
{{- if include "proofgate.verifier.hasSocket" . }}
- name: proofgate-socket
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
{{- if include "proofgate.verifier.controlUrl" . }}
{{- with $verifier.source.control.tokenSecret }}
{{ include "proofgate.secretVolume" (dict "name" "proofgate-control" "secret" .name "key" .key "path" "token" "mode" $mode) }}
{{- end }}
{{- end }}
{{- if include "proofgate.verifier.followsWithCa" . }}
{{ include "proofgate.caVolume" (dict "name" "proofgate-control-ca" "ref" (include "proofgate.verifier.controlCa" . | fromYaml)) }}
{{- end }}
{{- with $verifier.source.volume }}
- name: proofgate-bundle
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if include "proofgate.verifier.tlsGiven" . }}
- name: proofgate-tls
  secret:
    secretName: {{ include "proofgate.verifier.tlsSecret" . }}
    defaultMode: {{ $mode }}
{{- end }}
{{- if include "proofgate.caGiven" $verifier.tls.clientCa }}
{{ include "proofgate.caVolume" (dict "name" "proofgate-client-ca" "ref" $verifier.tls.clientCa) }}
{{- end }}
{{- if include "proofgate.redisGiven" . }}
{{- if include "proofgate.caGiven" .Values.redis.ca }}
{{ include "proofgate.caVolume" (dict "name" "proofgate-redis-ca" "ref" .Values.redis.ca) }}
{{- end }}
{{- with .Values.redis.sentinel.passwordSecret }}
{{- if .name }}
{{ include "proofgate.secretVolume" (dict "name" "proofgate-sentinel" "secret" .name "key" .key "path" "password" "mode" $mode) }}
{{- end }}
{{- end }}
{{- end }}
{{- with $verifier.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Whether there is only one verifier at a time: with a persistent state directory, or without Redis. */}}
{{- define "proofgate.verifier.isAlone" -}}
{{- if or .Values.verifier.persistence.enabled (not (include "proofgate.redisGiven" .)) }}true{{ end -}}
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

{{- define "proofgate.verifier.strategy" -}}
{{- if .Values.verifier.strategy -}}
{{- toYaml .Values.verifier.strategy -}}
{{- else if include "proofgate.verifier.isAlone" . -}}
type: Recreate
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: 1
  maxUnavailable: 0
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
  image: {{ include "proofgate.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  restartPolicy: Always
  command: [proofgate]
  args:
    {{- include "proofgate.verifier.args" . | nindent 4 }}
  {{- with include "proofgate.verifier.env" . }}
  env:
    {{- . | trim | nindent 4 }}
  {{- end }}
  ports:
    - { name: proofgate-admin, containerPort: 9192 }
  {{- include "proofgate.probes" 9192 | nindent 2 }}
  resources:
    {{- toYaml $verifier.resources | nindent 4 }}
  securityContext:
    {{- include "proofgate.containerSecurity" . | nindent 4 }}
    runAsUser: {{ int64 $sidecar.runAsUser }}
    runAsGroup: {{ int64 $sidecar.runAsGroup }}
  volumeMounts:
    {{- include "proofgate.verifier.mounts" . | nindent 4 }}
{{- end -}}

{{/* The sidecar's volumes, below the pod's `volumes`. */}}
{{- define "proofgate.sidecarVolumes" -}}
{{- include "proofgate.verifier.volumes" . -}}
{{- end -}}
