{{/*
The Deployment of a component, by its templates `proofgate.<component>.args`, `.ports`, `.mounts` and `.volumes`. Takes (dict "root" $ "component" …
"adminPort" … "strategy" …), and optionally "env", "podAnnotations", "initContainers" and "minReadySeconds". All but the port is YAML.
*/}}
{{- define "proofgate.deployment" -}}
{{- $values := index .root.Values .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "proofgate.metadata" . | nindent 2 }}
  {{- with $values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if not (dig "autoscaling" "enabled" false $values) }}
  replicas: {{ int $values.replicas }}
  {{- end }}
  {{- with .minReadySeconds }}
  minReadySeconds: {{ . }}
  {{- end }}
  strategy:
    {{- .strategy | nindent 4 }}
  selector:
    matchLabels:
      {{- include "proofgate.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "proofgate.podLabels" . | nindent 8 }}
      {{- if or .podAnnotations $values.podAnnotations }}
      annotations:
        {{- with .podAnnotations }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "proofgate.serviceAccountName" . }}
      automountServiceAccountToken: false
      # The variables that Kubernetes sets for Services could be read as settings (PROOFGATE_…).
      enableServiceLinks: false
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "proofgate.podSecurity" $values.podSecurityContext | nindent 8 }}
      terminationGracePeriodSeconds: {{ int $values.terminationGracePeriodSeconds }}
      {{- range $name := list "dnsPolicy" "runtimeClassName" }}
      {{- with index $values $name }}
      {{ $name }}: {{ . }}
      {{- end }}
      {{- end }}
      {{- range $name := list "dnsConfig" "hostAliases" }}
      {{- with index $values $name }}
      {{ $name }}:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- if or .initContainers $values.extraInitContainers }}
      initContainers:
        {{- with .initContainers }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with $values.extraInitContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .component }}
          ports:
            {{- include (printf "proofgate.%s.ports" .component) .root | nindent 12 }}
            - { name: admin, containerPort: {{ .adminPort }} }
          {{- include "proofgate.container" (merge (dict "probePort" "admin") .) | nindent 10 }}
          {{- include "proofgate.lifecycle" (dict "root" .root "seconds" $values.preStopSeconds) | nindent 10 }}
          securityContext:
            {{- include "proofgate.containerSecurity" $values.containerSecurityContext | nindent 12 }}
        {{- with $values.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
        {{- include (printf "proofgate.%s.volumes" .component) .root | nindent 8 }}
      {{- include "proofgate.scheduling" . | nindent 6 }}
{{- end -}}

{{/*
What the container has in a Deployment and as a sidecar. Takes (dict "root" $ "component" … "probePort" …), and optionally "env" as YAML.
*/}}
{{- define "proofgate.container" -}}
{{- $values := index .root.Values .component -}}
image: {{ include "proofgate.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: [proofgate]
args:
  {{- include (printf "proofgate.%s.args" .component) .root | nindent 2 }}
{{- if or .env $values.extraEnv }}
env:
  {{- with .env }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- with $values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{ include "proofgate.probes" (dict "port" .probePort "changes" $values.probes) }}
resources:
  {{- toYaml $values.resources | nindent 2 }}
volumeMounts:
  {{- include (printf "proofgate.%s.mounts" .component) .root | nindent 2 }}
{{- end -}}

{{/*
All programs serve these two paths on their admin listener. The kubelet's gRPC probe does not support TLS, so it is not used. Takes (dict "port" …
"changes" …), the values `probes` of a component.
*/}}
{{- define "proofgate.probes" -}}
{{- $defaults := dict
    "startup" (dict "path" "/livez" "timing" (dict "periodSeconds" 1 "failureThreshold" 60))
    "liveness" (dict "path" "/livez" "timing" (dict "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 3))
    "readiness" (dict "path" "/readyz" "timing" (dict "periodSeconds" 3 "timeoutSeconds" 2 "failureThreshold" 2)) -}}
{{- range $name := list "startup" "liveness" "readiness" -}}
{{- $probe := index $defaults $name }}
{{ $name }}Probe:
  httpGet: { path: {{ $probe.path }}, port: {{ $.port }} }
  {{- merge (dict) (index $.changes $name) $probe.timing | toYaml | nindent 2 }}
{{- end -}}
{{- end -}}
