{{/* Names, labels, and parts that every pod has. Those with a component take (dict "root" $ "component" "verifier"). */}}

{{- define "proofgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.componentName" -}}
{{- printf "%s-%s" (include "proofgate.fullname" .root) .component -}}
{{- end -}}

{{- define "proofgate.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "proofgate.labels" -}}
{{- $own := include "proofgate.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" (.root.Chart.AppVersion | toString) -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- merge $own .root.Values.commonLabels | toYaml -}}
{{- end -}}

{{- define "proofgate.podLabels" -}}
{{- $own := include "proofgate.labels" . | fromYaml -}}
{{- merge $own (index .root.Values .component).podLabels | toYaml -}}
{{- end -}}

{{- define "proofgate.metadata" -}}
name: {{ include "proofgate.componentName" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "proofgate.labels" . | nindent 2 }}
{{- end -}}

{{- define "proofgate.serviceAccountName" -}}
{{- $account := (index .root.Values .component).serviceAccount -}}
{{- if $account.name -}}
{{- $account.name -}}
{{- else if $account.create -}}
{{- include "proofgate.componentName" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{/* Kubernetes reads what is before the first slash as a registry. `global` values are also those of a parent chart. */}}
{{- define "proofgate.image" -}}
{{- with .Values.image -}}
{{- $repository := .repository -}}
{{- with $.Values.global.imageRegistry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}
{{- end -}}
{{- if .digest -}}
{{- printf "%s@%s" $repository .digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Container settings of the `restricted` Pod Security Standard, and a read-only root file system; takes further settings. */}}
{{- define "proofgate.containerSecurity" -}}
{{- $required := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "runAsNonRoot" true -}}
{{- $_ := set $required "capabilities" (dict "drop" (list "ALL")) -}}
{{- $_ := set $required "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- include "proofgate.securitySettings" (dict "required" $required "asked" .) -}}
{{- end -}}

{{/*
Pod settings of the same standard. OnRootMismatch: with any other policy each mount would give the group access to the files of a used
volume, and Control rejects a master key that its group can read.
*/}}
{{- define "proofgate.podSecurity" -}}
{{- $required := dict "runAsNonRoot" true "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- include "proofgate.securitySettings" (dict "required" $required "asked" .) -}}
{{- end -}}

{{/* A value of null removes a default of the chart. Takes (dict "required" … "asked" …). */}}
{{- define "proofgate.securitySettings" -}}
{{- $asked := dict -}}
{{- range $name, $value := .asked -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $asked $name (kindIs "float64" $value | ternary (int64 $value) $value) -}}
{{- end -}}
{{- end -}}
{{- /* `merge` would keep another value where the required one is false. */ -}}
{{- range $name, $value := .required -}}
{{- $_ := set $asked $name $value -}}
{{- end -}}
{{- toYaml $asked -}}
{{- end -}}

{{/* Scheduling of the pods. */}}
{{- define "proofgate.scheduling" -}}
{{- $values := index .root.Values .component -}}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- $selector := dict "labelSelector" (dict "matchLabels" (include "proofgate.selectorLabels" . | fromYaml)) }}
  {{- range $values.topologySpreadConstraints }}
  - {{- merge (deepCopy .) $selector | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* A preStop hook that delays SIGTERM. Kubernetes before 1.30 does not support `sleep`. */}}
{{- define "proofgate.lifecycle" -}}
{{- $seconds := int .seconds -}}
{{- if gt $seconds 0 }}
lifecycle:
  preStop:
    {{- if semverCompare ">=1.30.0-0" .root.Capabilities.KubeVersion.Version }}
    sleep:
      seconds: {{ $seconds }}
    {{- else }}
    exec:
      command: [node, -e, {{ printf "setTimeout(() => {}, %d)" (mul $seconds 1000) | quote }}]
    {{- end }}
{{- end }}
{{- end -}}

{{/* The liveness check as a command inside the container, which has Node.js and no shell. */}}
{{- define "proofgate.livenessCommand" -}}
- node
- -e
- {{ printf "require('node:http').get('http://localhost:%v/livez', ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))" . | quote }}
{{- end }}

{{/* `--name=value` for each setting; a list repeats its flag for each value. */}}
{{- define "proofgate.settingArgs" -}}
{{- range $name, $value := . }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
- {{ printf "--%s=%s" ($name | kebabcase) (include "proofgate.settingText" .) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Helm parses numbers as floating point and would print large ones with an exponent. */}}
{{- define "proofgate.settingText" -}}
{{- if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* Whether a CA reference names a ConfigMap or a Secret: takes the reference. */}}
{{- define "proofgate.caGiven" -}}
{{- if or .configMap .secret }}true{{ end -}}
{{- end -}}

{{/* A volume with the one file `ca.crt`: takes (dict "name" … "ref" …). */}}
{{- define "proofgate.caVolume" -}}
- name: {{ .name }}
  {{- if .ref.configMap }}
  configMap:
    name: {{ .ref.configMap }}
  {{- else }}
  secret:
    secretName: {{ .ref.secret }}
  {{- end }}
    items:
      - { key: {{ .ref.key | quote }}, path: ca.crt }
{{- end -}}

{{/* A volume with one file of a Secret: takes (dict "name" … "secret" … "key" … "path" … "mode" …). */}}
{{- define "proofgate.secretVolume" -}}
- name: {{ .name }}
  secret:
    secretName: {{ .secret }}
    defaultMode: {{ .mode }}
    items:
      - { key: {{ .key | quote }}, path: {{ .path }} }
{{- end -}}

{{- define "proofgate.readOnlyMount" -}}
- { name: {{ .name }}, mountPath: {{ .path }}, readOnly: true }
{{- end -}}
