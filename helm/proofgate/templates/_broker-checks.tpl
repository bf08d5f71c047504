{{/* Rejects values with which the broker could not start, or could not verify anybody. */}}

{{- define "proofgate.checks.broker" -}}
{{- $broker := .Values.broker -}}
{{- if not $broker.publicUrl -}}
{{- fail "broker.publicUrl is required: callers sign the URL by which they reach the broker." -}}
{{- end -}}
{{- if not $broker.signingKeys -}}
{{- fail "broker.signingKeys is required: a Secret for each trust domain, with the keys that sign its passports." -}}
{{- end -}}
{{- include "proofgate.checks.trustDomains" (dict "name" "broker.signingKeys" "entries" $broker.signingKeys) -}}
{{- include "proofgate.checks.tls" (dict "name" "broker.tls" "tls" $broker.tls "why" "callers prove their certificates in the handshake with the broker" "plain" false) -}}
{{- if and (gt (int $broker.replicas) 1) (not $broker.challengeKey.name) -}}
{{- fail (printf "broker.challengeKey.name is required with %d replicas: each would refuse the challenges of the others." (int $broker.replicas)) -}}
{{- end -}}
{{- include "proofgate.checks.bundleSources" . -}}
{{- end -}}

{{- define "proofgate.checks.bundleSources" -}}
{{- $spiffe := .Values.broker.spiffe -}}
{{- if not (or $spiffe.workloadApi.enabled $spiffe.bundles $spiffe.bundleEndpoints .Values.broker.softwareKeys.configMap) -}}
{{- fail "broker.spiffe or broker.softwareKeys is required: without trust bundles and registered keys the broker can verify no caller." -}}
{{- end -}}
{{- include "proofgate.checks.trustDomains" (dict "name" "broker.spiffe.bundles" "entries" $spiffe.bundles) -}}
{{- include "proofgate.checks.trustDomains" (dict "name" "broker.spiffe.bundleEndpoints" "entries" $spiffe.bundleEndpoints) -}}
{{- $ofFiles := list -}}
{{- range $spiffe.bundles }}{{ $ofFiles = append $ofFiles .trustDomain }}{{ end -}}
{{- range $spiffe.bundleEndpoints -}}
{{- if ne (eq .profile "https_spiffe") (not (empty .spiffeId)) -}}
{{- fail (printf "broker.spiffe.bundleEndpoints: %s needs a spiffeId with https_spiffe, and none with https_web." .trustDomain) -}}
{{- end -}}
{{- if and (hasPrefix (printf "spiffe://%s/" .trustDomain) (default "" .spiffeId)) (not (has .trustDomain $ofFiles)) -}}
{{- fail (printf "broker.spiffe.bundles needs one of %s: its endpoint shows an SVID of the same trust domain, and that is verified with a bundle that is there before." .trustDomain) -}}
{{- end -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" "broker.spiffe.endpointCa" "ref" $spiffe.endpointCa) -}}
{{- end -}}

{{- define "proofgate.checks.trustDomains" -}}
{{- $known := dict -}}
{{- range .entries -}}
{{- if hasKey $known .trustDomain -}}
{{- fail (printf "%s has %s twice: give one entry for each trust domain." $.name .trustDomain) -}}
{{- end -}}
{{- $_ := set $known .trustDomain true -}}
{{- end -}}
{{- end -}}
