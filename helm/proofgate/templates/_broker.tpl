{{/* Arguments, files and addresses of the broker. */}}

{{- define "proofgate.broker.name" -}}
{{- include "proofgate.componentName" (dict "root" . "component" "broker") -}}
{{- end -}}

{{/* Its cluster-internal URL. */}}
{{- define "proofgate.broker.serviceUrl" -}}
{{- printf "https://%s.%s.svc:%d" (include "proofgate.broker.name" .) .Release.Namespace (int .Values.broker.service.port) -}}
{{- end -}}

{{- define "proofgate.broker.tlsSecret" -}}
{{- if eq .Values.broker.tls.mode "certManager" -}}
{{- include "proofgate.broker.name" . }}-tls
{{- else -}}
{{- .Values.broker.tls.secretName -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.broker.args" -}}
{{- $broker := .Values.broker -}}
- broker
- {{ printf "--listen=%s:9196" $broker.listenHost | quote }}
- {{ printf "--admin-listen=%s:9197" $broker.listenHost | quote }}
- {{ printf "--public-url=%s" $broker.publicUrl | quote }}
{{- with $broker.issuer }}
- {{ printf "--issuer=%s" . | quote }}
{{- end }}
- --tls-cert-file=/etc/proofgate/tls/tls.crt
- --tls-key-file=/etc/proofgate/tls/tls.key
- --key-dir=/etc/proofgate/keys
{{- if $broker.challengeKey.name }}
- --challenge-key-file=/etc/proofgate/challenge-key/challenge-key
{{- end }}
{{- include "proofgate.broker.bundleArgs" .Values.broker.spiffe }}
{{- with $broker.softwareKeys }}
{{- if .configMap }}
- {{ printf "--software-keys=/etc/proofgate/software-keys/%s" .key | quote }}
{{- end }}
{{- end }}
{{- with $broker.denyList }}
{{- if .configMap }}
- {{ printf "--deny-file=/etc/proofgate/deny-list/%s" .key | quote }}
{{- end }}
{{- end }}
{{- if $broker.profiles.configMap }}
- --profiles=/etc/proofgate/profiles
{{- end }}
{{- include "proofgate.settingArgs" $broker.settings }}
{{- end -}}

{{/* Sources of trust bundles: takes the values of `broker.spiffe`. */}}
{{- define "proofgate.broker.bundleArgs" -}}
{{- if .workloadApi.enabled }}
- {{ printf "--spiffe-socket=unix:///spiffe-workload-api/%s" .workloadApi.socket | quote }}
{{- end }}
{{- range .bundles }}
- {{ printf "--spiffe-bundle=%s=/etc/proofgate/bundles/%s/bundle.json" .trustDomain .trustDomain | quote }}
{{- end }}
{{- range .bundleEndpoints }}
- {{ printf "--spiffe-bundle-endpoint=%s=%s,%s%s" .trustDomain .url .profile (.spiffeId | empty | ternary "" (printf ",%s" .spiffeId)) | quote }}
{{- end }}
{{- if include "proofgate.caGiven" .endpointCa }}
- --spiffe-bundle-ca-file=/etc/proofgate/endpoint-ca/ca.crt
{{- end }}
{{- end -}}

{{/* No mount has a `subPath`, because the kubelet would not update it: the broker reloads every file. */}}
{{- define "proofgate.broker.mounts" -}}
{{- $broker := .Values.broker -}}
- { name: tmp, mountPath: /tmp }
{{ include "proofgate.readOnlyMount" (dict "name" "tls" "path" "/etc/proofgate/tls") }}
{{- range $index, $keys := $broker.signingKeys }}
{{ include "proofgate.readOnlyMount" (dict "name" (printf "keys-%d" $index) "path" (printf "/etc/proofgate/keys/%s" $keys.trustDomain)) }}
{{- end }}
{{- if $broker.challengeKey.name }}
{{ include "proofgate.readOnlyMount" (dict "name" "challenge-key" "path" "/etc/proofgate/challenge-key") }}
{{- end }}
{{- if $broker.spiffe.workloadApi.enabled }}
{{ include "proofgate.readOnlyMount" (dict "name" "workload-api" "path" "/spiffe-workload-api") }}
{{- end }}
{{- range $index, $bundle := $broker.spiffe.bundles }}
{{ include "proofgate.readOnlyMount" (dict "name" (printf "bundle-%d" $index) "path" (printf "/etc/proofgate/bundles/%s" $bundle.trustDomain)) }}
{{- end }}
{{- if include "proofgate.caGiven" $broker.spiffe.endpointCa }}
{{ include "proofgate.readOnlyMount" (dict "name" "endpoint-ca" "path" "/etc/proofgate/endpoint-ca") }}
{{- end }}
{{- if $broker.softwareKeys.configMap }}
{{ include "proofgate.readOnlyMount" (dict "name" "software-keys" "path" "/etc/proofgate/software-keys") }}
{{- end }}
{{- if $broker.denyList.configMap }}
{{ include "proofgate.readOnlyMount" (dict "name" "deny-list" "path" "/etc/proofgate/deny-list") }}
{{- end }}
{{- if $broker.profiles.configMap }}
{{ include "proofgate.readOnlyMount" (dict "name" "profiles" "path" "/etc/proofgate/profiles") }}
{{- end }}
{{- with $broker.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* 288 is 0440: readable by the pod's group, not by others. */}}
{{- define "proofgate.broker.volumes" -}}
{{- $broker := .Values.broker -}}
- name: tmp
  emptyDir: {}
- name: tls
  secret:
    secretName: {{ include "proofgate.broker.tlsSecret" . }}
    defaultMode: 288
{{- range $index, $keys := $broker.signingKeys }}
- name: keys-{{ $index }}
  secret:
    secretName: {{ $keys.secretName }}
    defaultMode: 288
{{- end }}
{{- with $broker.challengeKey }}
{{- if .name }}
{{ include "proofgate.secretVolume" (dict "name" "challenge-key" "secret" .name "key" .key "path" "challenge-key" "mode" 288) }}
{{- end }}
{{- end }}
{{- with $broker.spiffe.workloadApi }}
{{- if .enabled }}
- name: workload-api
  csi:
    driver: {{ .driver }}
    readOnly: true
{{- end }}
{{- end }}
{{- range $index, $bundle := $broker.spiffe.bundles }}
{{ include "proofgate.broker.fileVolume" (dict "name" (printf "bundle-%d" $index) "ref" $bundle "path" "bundle.json") }}
{{- end }}
{{- if include "proofgate.caGiven" $broker.spiffe.endpointCa }}
{{ include "proofgate.caVolume" (dict "name" "endpoint-ca" "ref" $broker.spiffe.endpointCa) }}
{{- end }}
{{- range $name, $ref := dict "software-keys" $broker.softwareKeys "deny-list" $broker.denyList }}
{{- if $ref.configMap }}
{{ include "proofgate.broker.fileVolume" (dict "name" $name "ref" $ref "path" $ref.key) }}
{{- end }}
{{- end }}
{{- with $broker.profiles.configMap }}
- name: profiles
  configMap:
    name: {{ . }}
{{- end }}
{{- with $broker.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A volume with one file of a ConfigMap: takes (dict "name" … "ref" … "path" …). */}}
{{- define "proofgate.broker.fileVolume" -}}
- name: {{ .name }}
  configMap:
    name: {{ .ref.configMap }}
    items:
      - { key: {{ .ref.key | quote }}, path: {{ .path | quote }} }
{{- end -}}

{{- define "proofgate.broker.ports" -}}
- { name: api, containerPort: 9196 }
{{- end -}}
