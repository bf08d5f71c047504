{{/* Objects of all components: each takes (dict "root" $ "component" …). */}}

{{- define "proofgate.claim" -}}
{{- $persistence := (index .root.Values .component).persistence -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "proofgate.metadata" . | nindent 2 }}
  {{- if .keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
spec:
  accessModes: [{{ $persistence.accessMode }}]
  {{- with $persistence.storageClassName }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources:
    requests:
      storage: {{ $persistence.size | quote }}
{{- end -}}

{{- define "proofgate.serviceAccount" -}}
{{- $account := (index .root.Values .component).serviceAccount -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "proofgate.serviceAccountName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "proofgate.labels" . | nindent 4 }}
  {{- with $account.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end -}}

{{- define "proofgate.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "proofgate.metadata" . | nindent 2 }}
spec:
  {{- with (index .root.Values .component).podDisruptionBudget }}
  {{- if kindIs "invalid" .minAvailable }}
  maxUnavailable: {{ .maxUnavailable }}
  {{- else }}
  minAvailable: {{ .minAvailable }}
  {{- end }}
  {{- end }}
  # A pod that is not ready serves no clients, so it can be evicted.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "proofgate.selectorLabels" . | nindent 6 }}
{{- end -}}

{{- define "proofgate.autoscaler" -}}
{{- $scaling := (index .root.Values .component).autoscaling -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "proofgate.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "proofgate.componentName" . }}
  minReplicas: {{ int $scaling.minReplicas }}
  maxReplicas: {{ int $scaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: {{ int $scaling.targetCpuPercent }} }
  {{- with $scaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* A cert-manager Certificate. For a second listener also takes "prefix" and "tls", as in _listener.tpl. */}}
{{- define "proofgate.certificate" -}}
{{- $tls := .tls | default (index .root.Values .component).tls -}}
{{- $name := printf "%s-%stls" (include "proofgate.componentName" .) (default "" .prefix) -}}
{{- $host := include "proofgate.componentName" . -}}
{{- $namespace := .root.Release.Namespace -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ trimSuffix "-tls" $name }}
  namespace: {{ $namespace }}
  labels:
    {{- include "proofgate.labels" . | nindent 4 }}
spec:
  secretName: {{ $name }}
  issuerRef:
    name: {{ $tls.issuerRef.name }}
    kind: {{ $tls.issuerRef.kind }}
    group: {{ $tls.issuerRef.group }}
  privateKey: { algorithm: ECDSA, size: 256, rotationPolicy: Always }
  usages: [digital signature, server auth]
  dnsNames:
    {{- if not $tls.publicIssuer }}
    - {{ printf "%s.%s.svc" $host $namespace }}
    - {{ printf "%s.%s.svc.cluster.local" $host $namespace }}
    - {{ printf "%s.%s" $host $namespace }}
    - {{ $host }}
    {{- end }}
    {{- range $tls.extraDnsNames }}
    - {{ . | quote }}
    {{- end }}
{{- end -}}

{{/* A separate Service for scraping, so that the Service for clients does not expose the admin listener. */}}
{{- define "proofgate.metricsService" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "proofgate.componentName" . }}-metrics
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "proofgate.labels" . | nindent 4 }}
    proofgate/metrics: {{ .component | quote }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "proofgate.selectorLabels" . | nindent 4 }}
  ports:
    - { name: admin, port: {{ .port }}, targetPort: admin }
{{- end -}}

{{- define "proofgate.serviceMonitor" -}}
{{- $monitor := .root.Values.monitoring.serviceMonitor -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "proofgate.componentName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- merge (include "proofgate.labels" . | fromYaml) $monitor.labels | toYaml | nindent 4 }}
spec:
  jobLabel: app.kubernetes.io/component
  selector:
    matchLabels:
      {{- include "proofgate.selectorLabels" . | nindent 6 }}
      proofgate/metrics: {{ .component | quote }}
  endpoints:
    - { port: admin, path: /metrics, interval: {{ $monitor.interval }} }
{{- end -}}
