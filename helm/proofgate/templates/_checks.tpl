{{/* Rejects values that cannot work or would allow a replay, before anything is installed. Each error is one sentence. */}}

{{- define "proofgate.checks" -}}
{{- include "proofgate.checks.nothing" . -}}
{{- range $component := list "verifier" "proxy" "control" -}}
{{- if (index $.Values $component).enabled -}}
{{- include "proofgate.checks.autoscaling" (dict "root" $ "component" $component) -}}
{{- end -}}
{{- end -}}
{{- range $component := list "verifier" "proxy" -}}
{{- if (index $.Values $component).enabled -}}
{{- include "proofgate.checks.point" (dict "root" $ "component" $component) -}}
{{- end -}}
{{- end -}}
{{- if .Values.verifier.enabled -}}
{{- include "proofgate.checks.verifier" . -}}
{{- include "proofgate.checks.http" . -}}
{{- include "proofgate.checks.envoy" . -}}
{{- if eq .Values.verifier.mode "deployment" -}}
{{- include "proofgate.checks.ending" (dict "name" "verifier" "values" .Values.verifier "drainDelay" (include "proofgate.verifier.headlessDrainDelay" .)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.proxy.enabled -}}
{{- include "proofgate.checks.proxy" . -}}
{{- include "proofgate.checks.ending" (dict "name" "proxy" "values" .Values.proxy) -}}
{{- end -}}
{{- if .Values.control.enabled -}}
{{- include "proofgate.checks.control" . -}}
{{- include "proofgate.checks.exposed" . -}}
{{- include "proofgate.checks.instances" . -}}
{{- include "proofgate.checks.ending" (dict "name" "control" "values" .Values.control) -}}
{{- end -}}
{{- if .Values.broker.enabled -}}
{{- include "proofgate.checks.broker" . -}}
{{- include "proofgate.checks.ending" (dict "name" "broker" "values" .Values.broker) -}}
{{- end -}}
{{- if .Values.monitoring.serviceMonitor.enabled -}}
{{- include "proofgate.checks.scraping" . -}}
{{- end -}}
{{- if .Values.monitoring.podMonitor.enabled -}}
{{- include "proofgate.checks.sidecarScraping" . -}}
{{- end -}}
{{- if .Values.test.enabled -}}
{{- include "proofgate.checks.test" . -}}
{{- end -}}
{{- include "proofgate.checks.unprotected" . -}}
{{- end -}}

{{/* As a dependency all components may be disabled by the parent chart. `helm lint` does not report a template failure. */}}
{{- define "proofgate.checks.nothing" -}}
{{- $on := or .Values.verifier.enabled .Values.proxy.enabled .Values.control.enabled .Values.broker.enabled .Values.test.enabled .Values.monitoring.dashboard.enabled -}}
{{- if and (not $on) (eq .Template.BasePath (printf "%s/templates" .Chart.Name)) -}}
{{- fail "nothing is enabled: set verifier.enabled, proxy.enabled, control.enabled or broker.enabled, with the values that they require, or begin with values-quickstart.yaml of this chart." -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.autoscaling" -}}
{{- $scaling := (index .root.Values .component).autoscaling -}}
{{- if and $scaling.enabled (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- fail (printf "%s.autoscaling.minReplicas is more than maxReplicas." .component) -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.envoy" -}}
{{- $verifier := .Values.verifier -}}
{{- if $verifier.envoy.enabled -}}
{{- if not $verifier.envoy.upstreamHost -}}
{{- fail "verifier.envoy.upstreamHost is required with verifier.envoy.enabled: the API that checked requests go to." -}}
{{- end -}}
{{- if and (include "proofgate.tlsGiven" $verifier.tls) (not (include "proofgate.caGiven" $verifier.tls.clientCa)) -}}
{{- fail "verifier.envoy with TLS needs verifier.tls.clientCa: the configuration shows the verifier a certificate, and without that CA anybody may ask." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.tls" -}}
{{- if not .tls.mode -}}
{{- $plain := hasKey . "plain" | ternary "" ", or none where something else encrypts the connection" -}}
{{- fail (printf "%s.mode is required: %s; choose certManager or secret%s." .name .why $plain) -}}
{{- end -}}
{{- if and (eq .tls.mode "secret") (not .tls.secretName) -}}
{{- fail (printf "%s.secretName is required with mode secret: the Secret with tls.crt and tls.key." .name) -}}
{{- end -}}
{{- if and (eq .tls.mode "certManager") (not .tls.issuerRef.name) -}}
{{- fail (printf "%s.issuerRef.name is required with mode certManager: who is to issue the certificate." .name) -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.ca" -}}
{{- if and .ref.configMap .ref.secret -}}
{{- fail (printf "%s names a ConfigMap and a Secret: give one of them." .name) -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.control" -}}
{{- $control := .Values.control -}}
{{- if not $control.publicUrls -}}
{{- fail "control.publicUrls is required: workloads sign the URL by which they reach Control." -}}
{{- end -}}
{{- include "proofgate.checks.tls" (dict "name" "control.tls" "tls" $control.tls "why" "clients send tokens to Control") -}}
{{- if $control.tls.publicIssuer -}}
{{- if ne $control.tls.mode "certManager" -}}
{{- fail "control.tls.publicIssuer is for control.tls.mode certManager: a Secret of yours holds what you put into it." -}}
{{- end -}}
{{- if not $control.tls.extraDnsNames -}}
{{- fail "control.tls.extraDnsNames is required with control.tls.publicIssuer: it gives no certificate for names within the cluster, so name the hosts of the public URLs." -}}
{{- end -}}
{{- end -}}
{{- if and $control.oidc.issuer (not $control.oidc.clientId) -}}
{{- fail "control.oidc.clientId is required with control.oidc.issuer: how the identity provider knows this Control." -}}
{{- end -}}
{{- if and (not $control.oidc.issuer) (or $control.oidc.clientId $control.oidc.clientSecret.name) -}}
{{- fail "control.oidc.issuer is required with control.oidc.clientId and clientSecret: where operators sign in." -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" "control.oidc.ca" "ref" $control.oidc.ca) -}}
{{- include "proofgate.checks.ca" (dict "name" "control.issuerCa" "ref" $control.issuerCa) -}}
{{- end -}}

{{- define "proofgate.checks.exposed" -}}
{{- $control := .Values.control -}}
{{- if and $control.httpRoute.enabled (not $control.httpRoute.parentRefs) -}}
{{- fail "control.httpRoute.parentRefs is required: an HTTPRoute belongs to a Gateway." -}}
{{- end -}}
{{- range $name := list "ingress" "httpRoute" -}}
{{- $asked := index $control $name -}}
{{- if $asked.enabled -}}
{{- $paths := dict -}}
{{- range $control.publicUrls -}}
{{- $url := urlParse . -}}
{{- $_ := set $paths $url.hostname (trimSuffix "/" $url.path) -}}
{{- end -}}
{{- range include "proofgate.control.exposedHosts" (dict "root" $ "hosts" $asked.hosts) | fromYamlArray -}}
{{- if not (hasKey $paths .) -}}
{{- fail (printf "control.%s.hosts has %s, which is not the host of a URL in control.publicUrls: Control would refuse requests that are signed for it." $name .) -}}
{{- end -}}
{{- if or (regexMatch "^[0-9.]+$" .) (not (regexMatch "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$" .)) -}}
{{- fail (printf "control.%s serves %s, but Kubernetes takes only DNS names in lower case: list the hosts to serve in control.%s.hosts." $name . $name) -}}
{{- end -}}
{{- if index $paths . -}}
{{- fail (printf "control.%s serves %s, whose URL in control.publicUrls has a path: the proxy must strip it, which this template does not do: give Control a host of its own, or write the route yourself." $name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.instances" -}}
{{- $control := .Values.control -}}
{{- $database := $control.database -}}
{{- if eq $database.kind "sqlite" -}}
{{- if gt (int $control.replicas) 1 -}}
{{- fail (printf "control.replicas is %d on SQLite: the database is one process's, and a second one would not start; use control.database.kind postgresql, or keep one replica." (int $control.replicas)) -}}
{{- end -}}
{{- if $control.autoscaling.enabled -}}
{{- fail "control.autoscaling is enabled on SQLite: the database is one process's, and a second one would not start; use control.database.kind postgresql, or leave autoscaling off." -}}
{{- end -}}
{{- if and $control.strategy (ne (default "" $control.strategy.type) "Recreate") -}}
{{- fail "control.strategy runs two pods at a time on SQLite: the database is one process's, and the new one would not start; use type Recreate, or control.database.kind postgresql." -}}
{{- end -}}
{{- if $database.urlSecret.name -}}
{{- fail "control.database.urlSecret is for control.database.kind postgresql: SQLite has no URL." -}}
{{- end -}}
{{- else -}}
{{- if not $database.urlSecret.name -}}
{{- fail "control.database.urlSecret.name is required with postgresql: the Secret with the database's URL." -}}
{{- end -}}
{{- if not $control.masterKey.name -}}
{{- fail "control.masterKey.name is required with postgresql: all instances share one master key, and one that a pod makes for itself goes with the pod." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Minimum termination grace period: preStop, drain delay, drain timeout, and five seconds for the last records. */}}
{{- define "proofgate.checks.ending" -}}
{{- $values := .values -}}
{{- $drainMs := 0 -}}
{{- range $setting, $default := dict "drainDelay" (default "0s" .drainDelay) "drainTimeout" "10s" -}}
{{- $duration := default $default (index $values.settings $setting) -}}
{{- if not (regexMatch "^([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$" $duration) -}}
{{- fail (printf "%s.settings.%s is %s: give a duration with unit, such as 500ms, 30s or 1m30s." $.name $setting $duration) -}}
{{- end -}}
{{- $drainMs = add $drainMs (include "proofgate.milliseconds" $duration) -}}
{{- end -}}
{{- $needed := add (int $values.preStopSeconds) (div (add $drainMs 999) 1000) 5 -}}
{{- if lt (int64 $values.terminationGracePeriodSeconds) $needed -}}
{{- fail (printf "%s.terminationGracePeriodSeconds is %d, and preStopSeconds, drainDelay and drainTimeout of the settings, and 5 s for the last records, may take %d: a pod would be killed with requests in flight; raise it, or lower one of them." .name (int $values.terminationGracePeriodSeconds) $needed) -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.milliseconds" -}}
{{- $unitMs := dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(ms|h|m|s)" . -1 -}}
{{- $sum = add $sum (mul (regexFind "[0-9]+" . | atoi) (index $unitMs (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{- define "proofgate.checks.scraping" -}}
{{- range $component := list "verifier" "proxy" "control" "broker" -}}
{{- $values := index $.Values $component -}}
{{- if and $values.enabled (ne (default "" $values.mode) "sidecar") $values.networkPolicy.enabled (not $values.networkPolicy.metricsFrom) -}}
{{- fail (printf "monitoring.serviceMonitor is enabled, and %s.networkPolicy allows no scraper: name Prometheus' pods in %s.networkPolicy.metricsFrom." $component $component) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.sidecarScraping" -}}
{{- if not (and .Values.verifier.enabled (eq .Values.verifier.mode "sidecar")) -}}
{{- fail "monitoring.podMonitor is for verifier.mode sidecar: a deployment is scraped by monitoring.serviceMonitor." -}}
{{- end -}}
{{- if not .Values.monitoring.podMonitor.podLabels -}}
{{- fail "monitoring.podMonitor.podLabels is required: it names the gateway's pods, in which the sidecar runs; without it every pod would be scraped." -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.test" -}}
{{- $test := .Values.test -}}
{{- if not (and $test.url $test.policy $test.audience) -}}
{{- fail "test.url, test.policy and test.audience are required with test.enabled: what is requested, and how the test's key is enrolled." -}}
{{- end -}}
{{- if not (or $test.controlUrl .Values.control.enabled) -}}
{{- fail "test.controlUrl is required where this release has no Control: the test enrolls its key there." -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" "test.controlCa" "ref" $test.controlCa) -}}
{{- include "proofgate.checks.ca" (dict "name" "test.gatewayCa" "ref" $test.gatewayCa) -}}
{{- end -}}
