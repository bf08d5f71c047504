{{/* Rejects values of the verifier's two ports that cannot work. Each takes the root, unless it says otherwise. */}}

{{- define "proofgate.checks.verifier" -}}
{{- $verifier := .Values.verifier -}}
{{- if and (gt (int (default 1 $verifier.settings.workers)) 1) (eq (default "-" $verifier.settings.auditFile) "-") (eq (default "best-effort" $verifier.settings.audit) "required") -}}
{{- fail "verifier.settings.workers above 1 with audit required needs auditFile, a regular file on a volume: lines that pass through another process are not recorded when the answer leaves." -}}
{{- end -}}
{{- include "proofgate.checks.port" (dict "root" . "name" "verifier.tls" "tls" $verifier.tls) -}}
{{- end -}}

{{/* TLS of one port: takes (dict "root" $ "name" "verifier.tls" "tls" …). */}}
{{- define "proofgate.checks.port" -}}
{{- $name := .name -}}
{{- if eq .root.Values.verifier.mode "sidecar" -}}
{{- if or (include "proofgate.tlsGiven" .tls) (include "proofgate.caGiven" .tls.clientCa) -}}
{{- fail (printf "%s is for mode deployment: a sidecar is asked over its socket or loopback, which needs no TLS." $name) -}}
{{- end -}}
{{- else -}}
{{- include "proofgate.checks.tls" (dict "name" $name "tls" .tls "why" "a Check holds passports, and an answer lets requests in") -}}
{{- end -}}
{{- include "proofgate.checks.clients" (dict "name" $name "tls" .tls) -}}
{{- end -}}

{{/* Client certificates of a port: takes (dict "name" "verifier.tls" "tls" …). */}}
{{- define "proofgate.checks.clients" -}}
{{- $given := include "proofgate.caGiven" .tls.clientCa -}}
{{- if and $given (eq .tls.mode "none") -}}
{{- fail (printf "%s.clientCa without TLS has no effect: set %s.mode to certManager or secret." .name .name) -}}
{{- end -}}
{{- if and .tls.clientSans (not $given) -}}
{{- fail (printf "%s.clientSans needs %s.clientCa: names of certificates that anybody can make say nothing." .name .name) -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" (printf "%s.clientCa" .name) "ref" .tls.clientCa) -}}
{{- end -}}

{{/* The HTTP port. Who may ask, where the origin comes from and what is known about bodies: docs/operate/forward-auth.md. */}}
{{- define "proofgate.checks.http" -}}
{{- $verifier := .Values.verifier -}}
{{- $http := $verifier.http -}}
{{- if $http.enabled -}}
{{- if not $http.profile -}}
{{- fail "verifier.http.profile is required with verifier.http.enabled: it names the proxy that asks, and so the headers that describe a request." -}}
{{- end -}}
{{- if not $verifier.settings.externalOrigin -}}
{{- fail "verifier.settings.externalOrigin is required with verifier.http.enabled, such as https://api.shop.example: scheme and host come from no header." -}}
{{- end -}}
{{- $bodies := has $http.profile (list "nginx" "caddy") | ternary "removed" "forwarded" -}}
{{- if not (has $http.body (list "unknown" $bodies)) -}}
{{- fail (printf "verifier.http.body is %s, and with profile %s it can be %s or unknown." $http.body $http.profile $bodies) -}}
{{- end -}}
{{- if and (eq $http.profile "nginx") (not $http.secret.name) -}}
{{- fail "verifier.http.secret.name is required with profile nginx: the Secret with the value that nginx sends with each check." -}}
{{- end -}}
{{- if and (ne $http.profile "nginx") $http.secret.name -}}
{{- fail (printf "verifier.http.secret is for profile nginx, not %s." $http.profile) -}}
{{- end -}}
{{- include "proofgate.checks.port" (dict "root" . "name" "verifier.http.tls" "tls" $http.tls) -}}
{{- if eq $verifier.mode "sidecar" -}}
{{- if $http.trustedProxies -}}
{{- fail "verifier.http.trustedProxies is for mode deployment: only containers of its pod reach a sidecar." -}}
{{- end -}}
{{- if and $verifier.sidecar.loopback.enabled (eq (int $verifier.sidecar.loopback.port) 9195) -}}
{{- fail "verifier.sidecar.loopback.port is 9195, which is the port of verifier.http." -}}
{{- end -}}
{{- else if not (or $http.trustedProxies (include "proofgate.caGiven" $http.tls.clientCa)) -}}
{{- fail "verifier.http needs tls.clientCa or trustedProxies: a check uses up a proof, so only your proxies may ask." -}}
{{- end -}}
{{- if eq (int $http.port) (int $verifier.service.port) -}}
{{- fail (printf "verifier.http.port is %d, which is verifier.service.port." (int $http.port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
