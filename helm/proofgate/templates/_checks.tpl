{{/* Rejects values that cannot work or would allow a replay, before anything is installed. Each error is one sentence. */}}

{{- define "proofgate.checks" -}}
{{- include "proofgate.checks.nothing" . -}}
{{- if .Values.verifier.enabled -}}
{{- include "proofgate.checks.verifier" . -}}
{{- include "proofgate.checks.replay" . -}}
{{- include "proofgate.checks.state" . -}}
{{- include "proofgate.checks.door" . -}}
{{- include "proofgate.checks.envoy" . -}}
{{- if eq .Values.verifier.mode "deployment" -}}
{{- include "proofgate.checks.ending" (dict "name" "verifier" "values" .Values.verifier "drainDelay" (include "proofgate.verifier.headlessDrainDelay" .)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.control.enabled -}}
{{- include "proofgate.checks.control" . -}}
{{- include "proofgate.checks.exposed" . -}}
{{- include "proofgate.checks.instances" . -}}
{{- include "proofgate.checks.ending" (dict "name" "control" "values" .Values.control) -}}
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

{{/* As a dependency both components may be disabled by the parent chart. `helm lint` does not report a template failure. */}}
{{- define "proofgate.checks.nothing" -}}
{{- $on := or .Values.verifier.enabled .Values.control.enabled .Values.test.enabled .Values.monitoring.dashboard.enabled -}}
{{- if and (not $on) (eq .Template.BasePath (printf "%s/templates" .Chart.Name)) -}}
{{- fail "nothing is enabled: set verifier.enabled or control.enabled, with the values that they require, or begin with values-quickstart.yaml of this chart." -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.verifier" -}}
{{- $verifier := .Values.verifier -}}
{{- $trust := $verifier.trust -}}
{{- if not $verifier.authSite -}}
{{- fail "verifier.authSite is required: a verifier serves one Auth Site, and takes no other's bundle." -}}
{{- end -}}
{{- if and $trust.existingConfigMap (or $trust.bundleKeys $trust.freshnessKeys) -}}
{{- fail "verifier.trust.existingConfigMap stands in place of verifier.trust.bundleKeys and freshnessKeys: give one of the two." -}}
{{- end -}}
{{- if and (not $trust.existingConfigMap) (or $trust.bundleKeyFiles $trust.freshnessKeyFiles) -}}
{{- fail "verifier.trust.bundleKeyFiles and freshnessKeyFiles name keys of verifier.trust.existingConfigMap: name that ConfigMap, too." -}}
{{- end -}}
{{- if not (or $trust.bundleKeys $trust.bundleKeyFiles) -}}
{{- fail "verifier.trust needs at least one bundle key (bundleKeys, or existingConfigMap with bundleKeyFiles): a verifier loads only bundles that a known key signed." -}}
{{- end -}}
{{- range $name, $content := $trust.freshnessKeys -}}
{{- if and (hasKey $trust.bundleKeys $name) (ne (index $trust.bundleKeys $name) $content) -}}
{{- fail (printf "verifier.trust.bundleKeys and freshnessKeys hold two different keys under the name %s: rename one of them." $name) -}}
{{- end -}}
{{- end -}}
{{- $url := include "proofgate.verifier.controlUrl" . -}}
{{- if and (include "proofgate.verifier.ownControl" .) .Values.control.tls.publicIssuer (regexMatch "^https?://[^/]+/" $url) -}}
{{- fail "verifier.source.control.url is required where control.tls.publicIssuer is set and the first of control.publicUrls has a path: verifiers follow Control at an address without one." -}}
{{- end -}}
{{- if not (or $url $verifier.source.volume) -}}
{{- fail "verifier.source is required: set source.control.url, enable this release's Control, or give source.volume with the signed bundle." -}}
{{- end -}}
{{- if and $url (not $verifier.source.control.tokenSecret.name) -}}
{{- fail "verifier.source.control.tokenSecret.name is required: Control hands bundles only to a target that shows its token." -}}
{{- end -}}
{{- if and (hasPrefix "http://" $url) (not $verifier.settings.allowPlainHttp) -}}
{{- fail "verifier.source.control would send the target's token in the clear: use https, or set verifier.settings.allowPlainHttp where something else encrypts it." -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" "verifier.source.control.ca" "ref" $verifier.source.control.ca) -}}
{{- end -}}

{{/* All verifiers must share one replay store: separate memory stores would accept a proof once each. */}}
{{- define "proofgate.checks.replay" -}}
{{- $verifier := .Values.verifier -}}
{{- $redis := .Values.redis -}}
{{- $why := "verifiers without Redis do not know each other's used proofs, so a replayed request could pass" -}}
{{- $mend := "set redis.url or redis.urlSecret.name" -}}
{{- if and $redis.url $redis.urlSecret.name -}}
{{- fail "redis.url and redis.urlSecret are the same setting: give one of them." -}}
{{- end -}}
{{- if contains "@" $redis.url -}}
{{- fail "redis.url holds a user or password, which everybody who may read pods would see: put the URL into a Secret and name it in redis.urlSecret." -}}
{{- end -}}
{{- if regexMatch "[?#]" $redis.url -}}
{{- fail "redis.url has a query or a fragment, and the verifier takes neither: a user and a password stand before the host, in a Secret that redis.urlSecret names." -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" "redis.ca" "ref" $redis.ca) -}}
{{- if include "proofgate.redisGiven" . -}}
{{- if hasKey $verifier.settings "maxReplayRecords" -}}
{{- fail "verifier.settings.maxReplayRecords is for a verifier without Redis: Redis is bounded by its maxmemory." -}}
{{- end -}}
{{- else -}}
{{- if eq $verifier.mode "sidecar" -}}
{{- fail (printf "verifier.mode is sidecar without Redis: a gateway may have several pods, and %s; %s." $why $mend) -}}
{{- end -}}
{{- if $verifier.autoscaling.enabled -}}
{{- fail (printf "verifier.autoscaling is enabled without Redis: %s; %s, or leave autoscaling off." $why $mend) -}}
{{- end -}}
{{- if gt (int $verifier.replicas) 1 -}}
{{- fail (printf "verifier.replicas is %d without Redis: %s; %s, or keep one replica." (int $verifier.replicas) $why $mend) -}}
{{- end -}}
{{- if and $verifier.strategy (ne (default "" $verifier.strategy.type) "Recreate") -}}
{{- fail (printf "verifier.strategy replaces pods while others run (maxSurge > 0, or one that still drains) without Redis: %s; %s, or use type Recreate." $why $mend) -}}
{{- end -}}
{{- if gt (int (default 1 $verifier.settings.workers)) 1 -}}
{{- fail (printf "verifier.settings.workers is %d without Redis: %s; %s, or keep one worker." (int $verifier.settings.workers) $why $mend) -}}
{{- end -}}
{{- if not $verifier.persistence.enabled -}}
{{- fail (printf "verifier.persistence is required without Redis: a new pod would not know which proofs were used before, or which bundle was the latest; enable it, or %s." $mend) -}}
{{- end -}}
{{- range $name, $value := $verifier.settings -}}
{{- if hasPrefix "redis" $name -}}
{{- fail (printf "verifier.settings.%s is about a Redis that is not there: %s." $name $mend) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Only one process can use a state directory. */}}
{{- define "proofgate.checks.state" -}}
{{- $verifier := .Values.verifier -}}
{{- if $verifier.persistence.enabled -}}
{{- $why := "a state directory belongs to one verifier at a time" -}}
{{- if eq $verifier.mode "sidecar" -}}
{{- fail (printf "verifier.persistence is enabled with mode sidecar: %s, and a gateway may have several pods; leave it off, since Redis keeps the mark." $why) -}}
{{- end -}}
{{- if or (gt (int $verifier.replicas) 1) $verifier.autoscaling.enabled -}}
{{- fail (printf "verifier.persistence is enabled with more than one replica: %s; leave it off, since Redis keeps the mark." $why) -}}
{{- end -}}
{{- if and $verifier.strategy (ne (default "" $verifier.strategy.type) "Recreate") -}}
{{- fail (printf "verifier.persistence is enabled with a strategy that runs two pods: %s; use type Recreate, or leave persistence off." $why) -}}
{{- end -}}
{{- end -}}
{{- if and $verifier.autoscaling.enabled (gt (int $verifier.autoscaling.minReplicas) (int $verifier.autoscaling.maxReplicas)) -}}
{{- fail "verifier.autoscaling.minReplicas is more than maxReplicas." -}}
{{- end -}}
{{- if and (gt (int (default 1 $verifier.settings.workers)) 1) (eq (default "-" $verifier.settings.auditFile) "-") (eq (default "best-effort" $verifier.settings.audit) "required") -}}
{{- fail "verifier.settings.workers above 1 with audit required needs auditFile, a regular file on a volume: lines that pass through another process are not recorded when the answer leaves." -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.door" -}}
{{- $verifier := .Values.verifier -}}
{{- $tls := $verifier.tls -}}
{{- if eq $verifier.mode "sidecar" -}}
{{- if or (include "proofgate.verifier.tlsGiven" .) (include "proofgate.caGiven" $tls.clientCa) -}}
{{- fail "verifier.tls is for mode deployment: a sidecar is asked over its socket or loopback, which needs no TLS." -}}
{{- end -}}
{{- else -}}
{{- include "proofgate.checks.tls" (dict "name" "verifier.tls" "tls" $tls "why" "a Check holds passports, and an answer lets requests in") -}}
{{- if and (include "proofgate.caGiven" $tls.clientCa) (eq $tls.mode "none") -}}
{{- fail "verifier.tls.clientCa without TLS has no effect: set verifier.tls.mode to certManager or secret." -}}
{{- end -}}
{{- end -}}
{{- if and $tls.clientSans (not (include "proofgate.caGiven" $tls.clientCa)) -}}
{{- fail "verifier.tls.clientSans needs verifier.tls.clientCa: names of certificates that anybody can make say nothing." -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" "verifier.tls.clientCa" "ref" $tls.clientCa) -}}
{{- end -}}

{{- define "proofgate.checks.envoy" -}}
{{- $verifier := .Values.verifier -}}
{{- if $verifier.envoy.enabled -}}
{{- if not $verifier.envoy.upstreamHost -}}
{{- fail "verifier.envoy.upstreamHost is required with verifier.envoy.enabled: the API that checked requests go to." -}}
{{- end -}}
{{- if and (include "proofgate.verifier.tlsGiven" .) (not (include "proofgate.caGiven" $verifier.tls.clientCa)) -}}
{{- fail "verifier.envoy with TLS needs verifier.tls.clientCa: the configuration shows the verifier a certificate, and without that CA anybody may ask." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.tls" -}}
{{- if not .tls.mode -}}
{{- fail (printf "%s.mode is required: %s; choose certManager or secret, or none where something else encrypts the connection." .name .why) -}}
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
{{- range $component := list "verifier" "control" -}}
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
