{{/* Pods of an enforcement point, the verifier or the proxy: each takes (dict "root" $ "component" "verifier"), unless it says otherwise. */}}

{{/* Takes the root. */}}
{{- define "proofgate.redisGiven" -}}
{{- if or .Values.redis.url .Values.redis.urlSecret.name }}true{{ end -}}
{{- end -}}

{{/* Whether it uses this release's Control. */}}
{{- define "proofgate.point.ownControl" -}}
{{- if and .root.Values.control.enabled (not (index .root.Values .component).source.control.url) }}true{{ end -}}
{{- end -}}

{{/* URL of its Control; empty without one. */}}
{{- define "proofgate.point.controlUrl" -}}
{{- if include "proofgate.point.ownControl" . -}}
{{- include "proofgate.control.verifierUrl" .root -}}
{{- else -}}
{{- (index .root.Values .component).source.control.url -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.point.controlCa" -}}
{{- $given := (index .root.Values .component).source.control.ca -}}
{{- include "proofgate.control.ca" (dict "root" .root "given" $given "own" (include "proofgate.point.ownControl" .)) -}}
{{- end -}}

{{/* True when the CA certificates for Control come from a ConfigMap or Secret. */}}
{{- define "proofgate.point.followsWithCa" -}}
{{- if include "proofgate.point.controlUrl" . -}}
{{- include "proofgate.caGiven" (include "proofgate.point.controlCa" . | fromYaml) -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.point.trustConfigMap" -}}
{{- default (printf "%s-trust" (include "proofgate.componentName" .)) (index .root.Values .component).trust.existingConfigMap -}}
{{- end -}}

{{/* Contents of the chart's own ConfigMap of keys. A name may be in the first two lists, with one content. */}}
{{- define "proofgate.point.trustData" -}}
{{- $trust := (index .root.Values .component).trust -}}
{{- merge (dict) $trust.bundleKeys $trust.freshnessKeys $trust.breakGlassKeys | toYaml -}}
{{- end -}}

{{- define "proofgate.point.args" -}}
{{- $values := index .root.Values .component -}}
{{- $trust := $values.trust -}}
- {{ printf "--auth-site=%s" $values.authSite | quote }}
- --state-dir=/var/lib/proofgate
- {{ printf "--admin-listen=%s:9192" $values.listenHost | quote }}
{{- range (concat (keys $trust.bundleKeys | sortAlpha) $trust.bundleKeyFiles) }}
- {{ printf "--bundle-key=/etc/proofgate/trust/%s" . | quote }}
{{- end }}
{{- range (concat (keys $trust.freshnessKeys | sortAlpha) $trust.freshnessKeyFiles) }}
- {{ printf "--freshness-key=/etc/proofgate/trust/%s" . | quote }}
{{- end }}
{{- range (concat (keys $trust.breakGlassKeys | sortAlpha) $trust.breakGlassKeyFiles) }}
- {{ printf "--break-glass-key=/etc/proofgate/trust/%s" . | quote }}
{{- end }}
{{- if $trust.breakGlassConfigMap }}
- --break-glass-file=/etc/proofgate/break-glass/break-glass.jws
{{- end }}
{{- with include "proofgate.point.controlUrl" . }}
- {{ printf "--control-url=%s" . | quote }}
- --control-token-file=/etc/proofgate/control/token
{{- end }}
{{- if include "proofgate.point.followsWithCa" . }}
- --control-ca-file=/etc/proofgate/control-ca/ca.crt
{{- end }}
{{- if $values.source.volume }}
- --bundle=/etc/proofgate/bundle
{{- end }}
{{- include "proofgate.point.replayArgs" . }}
{{- include "proofgate.settingArgs" $values.settings }}
{{- end -}}

{{/*
A URL from a Secret is passed in PROOFGATE_REPLAY, because every user of the node can read arguments. Its content is unknown here. Because of
--redis-timeout, set to its default, the program rejects `memory`, with which several verifiers would not share a store.
*/}}
{{- define "proofgate.point.replayArgs" -}}
{{- $redis := .root.Values.redis -}}
{{- if $redis.url }}
- {{ printf "--replay=%s" $redis.url | quote }}
{{- else if not $redis.urlSecret.name }}
- --replay=memory
{{- end }}
{{- if include "proofgate.redisGiven" .root }}
{{- if not (hasKey (index .root.Values .component).settings "redisTimeout") }}
- --redis-timeout=100ms
{{- end }}
{{- if $redis.passwordSecret.name }}
- --redis-password-file=/etc/proofgate/redis/password
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

{{- define "proofgate.point.env" -}}
{{- with .Values.redis.urlSecret }}
{{- if .name -}}
- name: PROOFGATE_REPLAY
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "proofgate.point.mounts" -}}
{{- $values := index .root.Values .component -}}
- { name: proofgate-state, mountPath: /var/lib/proofgate }
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-trust" "path" "/etc/proofgate/trust") }}
{{- if $values.trust.breakGlassConfigMap }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-break-glass" "path" "/etc/proofgate/break-glass") }}
{{- end }}
{{- if include "proofgate.point.controlUrl" . }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-control" "path" "/etc/proofgate/control") }}
{{- end }}
{{- if include "proofgate.point.followsWithCa" . }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-control-ca" "path" "/etc/proofgate/control-ca") }}
{{- end }}
{{- if $values.source.volume }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-bundle" "path" "/etc/proofgate/bundle") }}
{{- end }}
{{- with .root.Values.redis }}
{{- if include "proofgate.redisGiven" $.root }}
{{- if .passwordSecret.name }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-redis" "path" "/etc/proofgate/redis") }}
{{- end }}
{{- if include "proofgate.caGiven" .ca }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-redis-ca" "path" "/etc/proofgate/redis-ca") }}
{{- end }}
{{- if .sentinel.passwordSecret.name }}
{{ include "proofgate.readOnlyMount" (dict "name" "proofgate-sentinel" "path" "/etc/proofgate/sentinel") }}
{{- end }}
{{- end }}
{{- end }}
{{- with $values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Modes: 288 is 0440, for the group of the chart's own pod. The group of a sidecar's pod is unknown, so it gets 292 (0444), in a volume that
only the sidecar mounts.
*/}}
{{- define "proofgate.point.secretMode" -}}
{{- eq (default "" (index .root.Values .component).mode) "sidecar" | ternary 292 288 -}}
{{- end -}}

{{- define "proofgate.point.volumes" -}}
{{- $values := index .root.Values .component -}}
{{- $mode := include "proofgate.point.secretMode" . -}}
- name: proofgate-state
  {{- if $values.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ default (include "proofgate.componentName" .) $values.persistence.existingClaim }}
  {{- else }}
  emptyDir: {}
  {{- end }}
- name: proofgate-trust
  configMap:
    name: {{ include "proofgate.point.trustConfigMap" . }}
{{- with $values.trust.breakGlassConfigMap }}
- name: proofgate-break-glass
  configMap:
    name: {{ . }}
    optional: true
{{- end }}
{{- if include "proofgate.point.controlUrl" . }}
{{- with $values.source.control.tokenSecret }}
{{ include "proofgate.secretVolume" (dict "name" "proofgate-control" "secret" .name "key" .key "path" "token" "mode" $mode) }}
{{- end }}
{{- end }}
{{- if include "proofgate.point.followsWithCa" . }}
{{ include "proofgate.caVolume" (dict "name" "proofgate-control-ca" "ref" (include "proofgate.point.controlCa" . | fromYaml)) }}
{{- end }}
{{- with $values.source.volume }}
- name: proofgate-bundle
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.redis }}
{{- if include "proofgate.redisGiven" $.root }}
{{- with .passwordSecret }}
{{- if .name }}
{{ include "proofgate.secretVolume" (dict "name" "proofgate-redis" "secret" .name "key" .key "path" "password" "mode" $mode) }}
{{- end }}
{{- end }}
{{- if include "proofgate.caGiven" .ca }}
{{ include "proofgate.caVolume" (dict "name" "proofgate-redis-ca" "ref" .ca) }}
{{- end }}
{{- with .sentinel.passwordSecret }}
{{- if .name }}
{{ include "proofgate.secretVolume" (dict "name" "proofgate-sentinel" "secret" .name "key" .key "path" "password" "mode" $mode) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Whether there is only one pod at a time: with a persistent state directory, or without Redis. */}}
{{- define "proofgate.point.isAlone" -}}
{{- if or (index .root.Values .component).persistence.enabled (not (include "proofgate.redisGiven" .root)) }}true{{ end -}}
{{- end -}}

{{- define "proofgate.point.strategy" -}}
{{- $strategy := (index .root.Values .component).strategy -}}
{{- if $strategy -}}
{{- toYaml $strategy -}}
{{- else if include "proofgate.point.isAlone" . -}}
type: Recreate
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: 1
  maxUnavailable: 0
{{- end -}}
{{- end -}}
