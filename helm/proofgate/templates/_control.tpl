{{/* Addresses and CA certificates of this release's Control. */}}

{{- define "proofgate.control.name" -}}
{{- include "proofgate.componentName" (dict "root" . "component" "control") -}}
{{- end -}}

{{- define "proofgate.control.tlsSecret" -}}
{{- if eq .Values.control.tls.mode "certManager" -}}
{{- include "proofgate.control.name" . }}-tls
{{- else -}}
{{- .Values.control.tls.secretName -}}
{{- end -}}
{{- end -}}

{{/* Control's cluster-internal URL, for verifiers. */}}
{{- define "proofgate.control.serviceUrl" -}}
{{- $scheme := eq .Values.control.tls.mode "none" | ternary "http" "https" -}}
{{- printf "%s://%s.%s.svc:%d" $scheme (include "proofgate.control.name" .) .Release.Namespace (int .Values.control.service.port) -}}
{{- end -}}

{{/* Where this release's verifiers reach it: its Service, whose name no certificate of a public issuer has. */}}
{{- define "proofgate.control.verifierUrl" -}}
{{- if .Values.control.tls.publicIssuer -}}
{{- first .Values.control.publicUrls | trimSuffix "/" -}}
{{- else -}}
{{- include "proofgate.control.serviceUrl" . -}}
{{- end -}}
{{- end -}}

{{/* A reference to certificates that trust it, as YAML: takes (dict "root" … "given" … "own" whether this release's is meant). */}}
{{- define "proofgate.control.ca" -}}
{{- if include "proofgate.caGiven" .given -}}
{{- toYaml .given -}}
{{- else if and .own (eq .root.Values.control.tls.mode "certManager") (not .root.Values.control.tls.publicIssuer) -}}
{{- dict "configMap" "" "secret" (include "proofgate.control.tlsSecret" .root) "key" "ca.crt" | toYaml -}}
{{- else -}}
{{- toYaml .given -}}
{{- end -}}
{{- end -}}

{{/* Hosts for which requests come from outside, as YAML: takes (dict "root" … "hosts" those that were chosen). */}}
{{- define "proofgate.control.exposedHosts" -}}
{{- $hosts := list -}}
{{- range .root.Values.control.publicUrls -}}
{{- $hosts = append $hosts (urlParse .).hostname -}}
{{- end -}}
{{- default ($hosts | uniq) .hosts | toYaml -}}
{{- end -}}

{{- define "proofgate.control.args" -}}
{{- $control := .Values.control -}}
- control
- --data-dir=/var/lib/proofgate
- {{ printf "--listen=%s:9193" $control.listenHost | quote }}
- {{ printf "--admin-listen=%s:9194" $control.listenHost | quote }}
{{- range $control.publicUrls }}
- {{ printf "--public-url=%s" . | quote }}
{{- end }}
{{- if eq $control.tls.mode "none" }}
- --allow-plain-http
{{- else }}
- --tls-cert=/etc/proofgate/tls/tls.crt
- --tls-key=/etc/proofgate/tls/tls.key
{{- end }}
{{- if eq $control.database.kind "postgresql" }}
- --database-url-file=/etc/proofgate/database/url
{{- end }}
{{- if $control.masterKey.name }}
- --master-key-file=/run/proofgate/secrets/master-key
{{- end }}
{{- if $control.bootstrapToken.name }}
- --bootstrap-token-file=/run/proofgate/secrets/bootstrap-token
{{- end }}
{{- with $control.oidc }}
{{- if .issuer }}
- {{ printf "--oidc-issuer=%s" .issuer | quote }}
- {{ printf "--oidc-client-id=%s" .clientId | quote }}
{{- if .clientSecret.name }}
- --oidc-client-secret-file=/etc/proofgate/oidc/client-secret
{{- end }}
{{- if include "proofgate.caGiven" .ca }}
- --oidc-ca-file=/etc/proofgate/oidc-ca/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- if include "proofgate.caGiven" $control.issuerCa }}
- --issuer-ca-file=/etc/proofgate/issuer-ca/ca.crt
{{- end }}
{{- if not (hasKey $control.settings "workloadImage") }}
- {{ printf "--workload-image=%s" (include "proofgate.image" .) | quote }}
{{- end }}
{{- include "proofgate.settingArgs" $control.settings }}
{{- end -}}

{{- define "proofgate.control.mounts" -}}
{{- $control := .Values.control -}}
- { name: data, mountPath: /var/lib/proofgate }
- { name: tmp, mountPath: /tmp }
{{- if ne $control.tls.mode "none" }}
{{ include "proofgate.readOnlyMount" (dict "name" "tls" "path" "/etc/proofgate/tls") }}
{{- end }}
{{- if eq $control.database.kind "postgresql" }}
{{ include "proofgate.readOnlyMount" (dict "name" "database" "path" "/etc/proofgate/database") }}
{{- end }}
{{- if include "proofgate.control.ownSecrets" . }}
{{ include "proofgate.readOnlyMount" (dict "name" "secrets" "path" "/run/proofgate/secrets") }}
{{- end }}
{{- if $control.oidc.issuer }}
{{- if $control.oidc.clientSecret.name }}
{{ include "proofgate.readOnlyMount" (dict "name" "oidc" "path" "/etc/proofgate/oidc") }}
{{- end }}
{{- if include "proofgate.caGiven" $control.oidc.ca }}
{{ include "proofgate.readOnlyMount" (dict "name" "oidc-ca" "path" "/etc/proofgate/oidc-ca") }}
{{- end }}
{{- end }}
{{- if include "proofgate.caGiven" $control.issuerCa }}
{{ include "proofgate.readOnlyMount" (dict "name" "issuer-ca" "path" "/etc/proofgate/issuer-ca") }}
{{- end }}
{{- with $control.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* 288 is 0440: readable by the pod's group, not by others. */}}
{{- define "proofgate.control.volumes" -}}
{{- $control := .Values.control -}}
- name: data
  {{- if eq $control.database.kind "sqlite" }}
  persistentVolumeClaim:
    claimName: {{ default (include "proofgate.control.name" .) $control.persistence.existingClaim }}
  {{- else }}
  emptyDir: {}
  {{- end }}
- name: tmp
  emptyDir: {}
{{- if ne $control.tls.mode "none" }}
- name: tls
  secret:
    secretName: {{ include "proofgate.control.tlsSecret" . }}
    defaultMode: 288
{{- end }}
{{- if eq $control.database.kind "postgresql" }}
{{ include "proofgate.secretVolume" (dict "name" "database" "secret" $control.database.urlSecret.name "key" $control.database.urlSecret.key "path" "url" "mode" 288) }}
{{- end }}
{{- if include "proofgate.control.ownSecrets" . }}
- name: secrets
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
- name: mounted-secrets
  projected:
    defaultMode: 288
    sources:
      {{- with $control.masterKey }}
      {{- if .name }}
      - secret:
          name: {{ .name }}
          items:
            - { key: {{ .key | quote }}, path: master-key }
      {{- end }}
      {{- end }}
      {{- with $control.bootstrapToken }}
      {{- if .name }}
      - secret:
          name: {{ .name }}
          items:
            - { key: {{ .key | quote }}, path: bootstrap-token }
      {{- end }}
      {{- end }}
{{- end }}
{{- if $control.oidc.issuer }}
{{- with $control.oidc.clientSecret }}
{{- if .name }}
{{ include "proofgate.secretVolume" (dict "name" "oidc" "secret" .name "key" .key "path" "client-secret" "mode" 288) }}
{{- end }}
{{- end }}
{{- if include "proofgate.caGiven" $control.oidc.ca }}
{{ include "proofgate.caVolume" (dict "name" "oidc-ca" "ref" $control.oidc.ca) }}
{{- end }}
{{- end }}
{{- if include "proofgate.caGiven" $control.issuerCa }}
{{ include "proofgate.caVolume" (dict "name" "issuer-ca" "ref" $control.issuerCa) }}
{{- end }}
{{- with $control.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Whether a Secret holds the master key or the bootstrap token, which need mode 0600. */}}
{{- define "proofgate.control.ownSecrets" -}}
{{- if or .Values.control.masterKey.name .Values.control.bootstrapToken.name }}true{{ end -}}
{{- end -}}

{{- define "proofgate.control.strategy" -}}
{{- if .Values.control.strategy -}}
{{- toYaml .Values.control.strategy -}}
{{- else if eq .Values.control.database.kind "sqlite" -}}
type: Recreate
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: 1
  maxUnavailable: 0
{{- end -}}
{{- end -}}

{{- define "proofgate.control.ports" -}}
- { name: api, containerPort: 9193 }
{{- end -}}

{{- define "proofgate.control.initContainers" -}}
{{- $control := .Values.control -}}
{{- if include "proofgate.control.ownSecrets" . }}
# Control rejects a master key that its group can read, and a mounted Secret is readable by the pod's group. This makes copies of mode 0600.
- name: own-secrets
  image: {{ include "proofgate.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command:
    - node
    - -e
    - |-
      const fs = require('node:fs');
      for (const name of process.argv.slice(1)) {
        const copy = `/run/proofgate/secrets/${name}`;
        fs.rmSync(copy, { force: true });
        fs.writeFileSync(copy, fs.readFileSync(`/mnt/secrets/${name}`), { mode: 0o600 });
      }
  args:
    {{- if $control.masterKey.name }}
    - master-key
    {{- end }}
    {{- if $control.bootstrapToken.name }}
    - bootstrap-token
    {{- end }}
  resources:
    {{- toYaml $control.resources | nindent 4 }}
  securityContext:
    {{- include "proofgate.containerSecurity" $control.containerSecurityContext | nindent 4 }}
  volumeMounts:
    - { name: mounted-secrets, mountPath: /mnt/secrets, readOnly: true }
    - { name: secrets, mountPath: /run/proofgate/secrets }
{{- end }}
{{- end -}}
