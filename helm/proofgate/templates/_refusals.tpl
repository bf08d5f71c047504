{{/* Rejects values that bypass the chart's settings: variables that override flags, readable secrets, exposed ports. */}}

{{- define "proofgate.checks.unprotected" -}}
{{- range $component := list "verifier" "proxy" "control" "broker" -}}
{{- $values := index $.Values $component -}}
{{- if $values.enabled -}}
{{- include "proofgate.checks.environment" (dict "name" (printf "%s.extraEnv" $component) "variables" $values.extraEnv) -}}
{{- include "proofgate.checks.annotations" (dict "name" $component "annotations" $values.podAnnotations) -}}
{{- range $name, $value := $values.settings -}}
{{- include "proofgate.checks.credentials" (dict "name" (printf "%s.settings.%s" $component $name) "value" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $component := list "verifier" "proxy" -}}
{{- $values := index $.Values $component -}}
{{- if $values.enabled -}}
{{- range $keys := list "bundleKeys" "freshnessKeys" "breakGlassKeys" -}}
{{- include "proofgate.checks.publicKeys" (dict "name" (printf "%s.trust.%s" $component $keys) "keys" (index $values.trust $keys)) -}}
{{- end -}}
{{- include "proofgate.checks.credentials" (dict "name" (printf "%s.source.control.url" $component) "value" $values.source.control.url) -}}
{{- end -}}
{{- end -}}
{{- if .Values.verifier.enabled -}}
{{- if eq .Values.verifier.mode "deployment" -}}
{{- with .Values.verifier -}}
{{- include "proofgate.checks.verifierDoor" (dict "service" .service "name" "verifier.tls" "tls" .tls) -}}
{{- if .http.enabled -}}
{{- include "proofgate.checks.verifierDoor" (dict "service" .service "name" "verifier.http.tls" "tls" .http.tls) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.control.enabled -}}
{{- include "proofgate.checks.credentials" (dict "name" "control.publicUrls" "value" .Values.control.publicUrls) -}}
{{- include "proofgate.checks.credentials" (dict "name" "control.oidc.issuer" "value" .Values.control.oidc.issuer) -}}
{{- include "proofgate.checks.controlDoor" . -}}
{{- end -}}
{{- if .Values.broker.enabled -}}
{{- include "proofgate.checks.credentials" (dict "name" "broker.publicUrl" "value" .Values.broker.publicUrl) -}}
{{- range .Values.broker.spiffe.bundleEndpoints -}}
{{- include "proofgate.checks.credentials" (dict "name" "broker.spiffe.bundleEndpoints" "value" .url) -}}
{{- end -}}
{{- end -}}
{{- if .Values.test.enabled -}}
{{- include "proofgate.checks.credentials" (dict "name" "test.url" "value" .Values.test.url) -}}
{{- include "proofgate.checks.credentials" (dict "name" "test.controlUrl" "value" .Values.test.controlUrl) -}}
{{- end -}}
{{- end -}}

{{/* The program reads settings from PROOFGATE_… variables, and Kubernetes uses the last of two variables with the same name. */}}
{{- define "proofgate.checks.environment" -}}
{{- $name := .name -}}
{{- range .variables -}}
{{- $variable := toString .name -}}
{{- if hasPrefix "PROOFGATE_" $variable -}}
{{- fail (printf "%s holds %s, which would set a flag of the program behind the back of this chart and its checks: use the value that there is for it, or settings." $name $variable) -}}
{{- end -}}
{{- if and .value (regexMatch `(?i:password|passwd|secret|token|api_?key)$` $variable) -}}
{{- fail (printf "%s holds the value of %s, which everybody who may read pods or ConfigMaps would see: put it into a Secret, and name that (valueFrom)." $name $variable) -}}
{{- end -}}
{{- include "proofgate.checks.credentials" (dict "name" (printf "%s %s" $name $variable) "value" .value) -}}
{{- end -}}
{{- end -}}

{{/* A private bundle key can sign bundles, so it must not be in a cluster. */}}
{{- define "proofgate.checks.publicKeys" -}}
{{- $name := .name -}}
{{- range $file, $content := .keys -}}
{{- if regexMatch `PRIVATE KEY|"d"\s*:` (toString $content) -}}
{{- fail (printf "%s holds a private key as %s: a verifier has public keys alone (keygen --public-out); anyone who has seen this one can sign bundles, so make another." $name $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A change of this annotation restarts the pods, so a user's annotation of the same name must not replace it. */}}
{{- define "proofgate.checks.annotations" -}}
{{- $name := .name -}}
{{- range $annotation, $value := .annotations -}}
{{- if hasPrefix "checksum/" $annotation -}}
{{- fail (printf "%s.podAnnotations has %s, a name of this chart's own: pods would keep old keys; call it otherwise." $name $annotation) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Rejects credentials in a URL, before its host or in its query, because everyone who can read pods or ConfigMaps would see them. A proxy's
URL may have no scheme. Takes a text, a list of texts, or anything else.
*/}}
{{- define "proofgate.checks.credentials" -}}
{{- $name := .name -}}
{{- $login := `://[^/?#]*@|^[^/?#@\s]+:[^/?#@\s]*@|[?&](?i:(?:[a-z0-9]+[-_.])*(?:auth|access|api|client|user)?(?:pass|passwd|password|pwd|secret|token|credentials?|sig|signature|key))=[^&#]` -}}
{{- range (kindIs "slice" .value | ternary .value (list .value)) -}}
{{- if and (kindIs "string" .) (regexMatch $login .) -}}
{{- fail (printf "%s holds a user or password, which everybody who may read pods or ConfigMaps would see: put it into a Secret, and name that (valueFrom, a token's file on extraVolumes)." $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A port of the verifier on a Service that others than pods reach: takes (dict "service" … "name" "verifier.tls" "tls" …). */}}
{{- define "proofgate.checks.verifierDoor" -}}
{{- if and (ne .service.type "ClusterIP") (not .service.allowUnauthenticated) -}}
{{- if not (include "proofgate.tlsGiven" .tls) -}}
{{- fail (printf "verifier.service.type is %s without TLS: passports would leave the cluster in the clear, and an attacker on the path could allow requests; set %s, or verifier.service.allowUnauthenticated where something else protects the port." .service.type .name) -}}
{{- end -}}
{{- if not (include "proofgate.caGiven" .tls.clientCa) -}}
{{- fail (printf "verifier.service.type is %s without %s.clientCa: any client that reaches the port could send Checks, and use up proofs and quotas; set it, or verifier.service.allowUnauthenticated where something else protects the port." .service.type .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.controlDoor" -}}
{{- $service := .Values.control.service -}}
{{- if and (ne $service.type "ClusterIP") (eq .Values.control.tls.mode "none") (not $service.allowPlainHttp) -}}
{{- fail (printf "control.service.type is %s without TLS: tokens would enter the cluster in the clear; set control.tls, or control.service.allowPlainHttp where the proxy in front of it has TLS and no other client reaches the port." $service.type) -}}
{{- end -}}
{{- end -}}
