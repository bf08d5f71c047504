{{/* Text of NOTES.txt: the next steps. */}}

{{- define "proofgate.notes" -}}
{{- $namespace := .Release.Namespace -}}
Proofgate {{ .Chart.AppVersion }}, release {{ .Release.Name }} in namespace {{ $namespace }}.
{{- if eq .Values.image.repository "proofgate" }}

WARNING: image.repository is {{ .Values.image.repository }}, which is in no registry: pods cannot pull it, unless their nodes have it. Build the image, push it to a
registry of yours, and name that.
{{- end }}
{{- if .Values.control.enabled }}

Control: {{ first .Values.control.publicUrls }}{{ if not .Values.control.tls.publicIssuer }}, in the cluster {{ include "proofgate.control.serviceUrl" . }}{{ end }}
  1. Wait for it:
       kubectl -n {{ $namespace }} rollout status deployment/{{ include "proofgate.control.name" . }}
  2. Its first operator signs in with the bootstrap token, which is
  {{- if .Values.control.bootstrapToken.name }} in your Secret {{ .Values.control.bootstrapToken.name }}.
  {{- else }} in a file of its pod:
       kubectl -n {{ $namespace }} exec deployment/{{ include "proofgate.control.name" . }} -- node -p "require('node:fs').readFileSync('/var/lib/proofgate/bootstrap-token', 'utf8')"
  {{- end }}
  3. Make site, target, source and enrollment policy with `proofgate ctl`, then end the bootstrap token: docs/tutorials/kubernetes.md, step by step; docs/operate/ctl.md,
     docs/operate/control.md "Operators".
  {{- if and (or .Values.control.ingress.enabled .Values.control.httpRoute.enabled) (ne .Values.control.tls.mode "none") }}
  Control itself has TLS: the Ingress controller must speak HTTPS to it (control.ingress.annotations), a Gateway needs a BackendTLSPolicy for Service {{ include "proofgate.control.name" . }}.
  {{- end }}
  {{- if not .Values.control.masterKey.name }}
  4. Keep the file master-key of its data directory in a safe place: a database without it is lost (docs/operate/control-upkeep.md "Backup and restore").
  {{- end }}
{{- end }}
{{- if .Values.verifier.enabled }}
{{- if eq .Values.verifier.mode "sidecar" }}

The verifier is a sidecar, for pods of a gateway in this namespace. ConfigMap {{ include "proofgate.verifier.name" . }}-sidecar holds it:
  {{- if include "proofgate.verifier.hasSocket" . }}
  pod.yaml             a strategic merge patch for the gateway's pod template; besides, mount the volume proofgate-socket
                       in the gateway's container at {{ .Values.verifier.sidecar.socketDirectory }}
  istiod-values.yaml   values for istiod's chart, with that mount in istio-proxy; then annotate the gateway's pods with
                       inject.istio.io/templates: {{ .Values.verifier.sidecar.istioTemplate }},gateway   (pods of workloads: {{ .Values.verifier.sidecar.istioTemplate }},sidecar)
  Run both containers as user {{ int64 .Values.verifier.sidecar.runAsUser }}, and point ext_authz at {{ include "proofgate.verifier.grpcAddress" . }}.
  {{- else }}
  pod.yaml             a strategic merge patch for the gateway's pod template
  istiod-values.yaml   values for istiod's chart; then annotate the gateway's pods with
                       inject.istio.io/templates: {{ .Values.verifier.sidecar.istioTemplate }},gateway   (pods of workloads: {{ .Values.verifier.sidecar.istioTemplate }},sidecar)
  Point ext_authz at {{ include "proofgate.verifier.grpcAddress" . }}. Every container of the pod reaches it there: not for pods with hostNetwork.
  {{- end }}
  Its admin listener is on port 9192 of those pods, for probes, and no NetworkPolicy of this release keeps others away from it: let the one
  of the gateway's pods open 9192 to Prometheus alone.
  The pods must be of this namespace: ConfigMaps and Secrets of another one cannot be mounted.
{{- else }}

The verifier answers ext_authz at {{ include "proofgate.verifier.name" . }}.{{ $namespace }}.svc:{{ int .Values.verifier.service.port }}{{ if include "proofgate.tlsGiven" .Values.verifier.tls }}, with TLS{{ end }}.
  1. Wait until it is ready; until then `/readyz` says why not:
       kubectl -n {{ $namespace }} rollout status deployment/{{ include "proofgate.verifier.name" . }}
  2. Point the gateway at it: docs/operate/gateways.md, for Envoy, Istio, Envoy Gateway and others.
  {{- if and .Values.verifier.networkPolicy.enabled (not .Values.verifier.networkPolicy.from) }}
  3. Its NetworkPolicy lets pods of namespace {{ $namespace }} ask, and no others. Where the gateway's pods run elsewhere (Istio: istio-ingress;
     Envoy Gateway: envoy-gateway-system), name them in verifier.networkPolicy.from.
  {{- end }}
  {{- if not (include "proofgate.caGiven" .Values.verifier.tls.clientCa) }}
  WARNING: any client that reaches the port can send Checks. Set verifier.tls.clientCa and clientSans, so that gateways alone may.
  {{- end }}
{{- end }}
{{- if .Values.verifier.envoy.enabled }}
  ConfigMap {{ include "proofgate.verifier.name" . }}-envoy holds envoy.yaml, for an Envoy of yours.
  {{- if include "proofgate.tlsGiven" .Values.verifier.tls }} It reads gateway.crt, gateway.key and ca.crt in {{ .Values.verifier.envoy.tlsDirectory }}.
  {{- end }}
{{- end }}
{{- with .Values.verifier.http }}
{{- if .enabled }}
  Proxies ask over HTTP at {{ if eq $.Values.verifier.mode "sidecar" }}{{ include "proofgate.verifier.httpAddress" $ }}{{ else }}{{ include "proofgate.verifier.name" $ }}.{{ $namespace }}.svc:{{ int .port }}{{ end }}: docs/operate/forward-auth.md, with the configuration of {{ .profile }}.
{{- end }}
{{- end }}
{{- if not (include "proofgate.redisGiven" .) }}
  WARNING: without Redis there is one verifier, and bundles must say single_verifier: true. While it restarts, requests are refused.
{{- end }}
{{- end }}
{{- if .Values.proxy.enabled }}
{{- $name := include "proofgate.componentName" (dict "root" . "component" "proxy") }}

The reverse proxy serves {{ include "proofgate.proxy.scheme" . }} at {{ $name }}.{{ $namespace }}.svc:{{ int .Values.proxy.service.port }}, in front of {{ .Values.proxy.upstream.url }}.
  1. Wait until it is ready; until then `/readyz` says why not:
       kubectl -n {{ $namespace }} rollout status deployment/{{ $name }}
  2. Let only its pods (app.kubernetes.io/component: proxy) reach the API, with a NetworkPolicy: a caller that reaches it directly needs no proof.
  {{- if not (include "proofgate.redisGiven" .) }}
  WARNING: without Redis there is one proxy, and bundles must say single_verifier: true. While it restarts, requests fail.
  {{- end }}
{{- end }}
{{- if .Values.broker.enabled }}

The broker: {{ .Values.broker.publicUrl }}, in the cluster {{ include "proofgate.broker.serviceUrl" . }}
  1. Wait until it is ready; until then `/readyz` says why not:
       kubectl -n {{ $namespace }} rollout status deployment/{{ include "proofgate.broker.name" . }}
  {{- if .Values.broker.spiffe.workloadApi.enabled }}
     Its pods need a registration entry at SPIRE: without one the Workload API gives them no trust bundles.
  {{- end }}
  2. Name it in the `brokers` of the site, and pin its keys: docs/operate/spiffe.md.
{{- end }}
{{- if and .Values.monitoring.prometheusRule.enabled (not .Values.monitoring.prometheusRule.runbookBaseUrl) }}

Alerts have no runbook_url: set monitoring.prometheusRule.runbookBaseUrl to the URL where you host docs/ of this version.
{{- end }}
{{- if .Values.test.enabled }}

Try a signed request: helm test {{ .Release.Name }} -n {{ $namespace }} --logs
  The policy's verified subject is system:serviceaccount:{{ $namespace }}:{{ include "proofgate.serviceAccountName" (dict "root" . "component" "test") }}.
  Its pod stays for its logs, also when the release goes: kubectl -n {{ $namespace }} delete pod {{ include "proofgate.componentName" (dict "root" . "component" "test") }}
{{- else if or .Values.verifier.enabled .Values.proxy.enabled .Values.control.enabled }}

To try a signed request with `helm test`, set test.enabled and what it requires.
{{- end }}
{{- end -}}
