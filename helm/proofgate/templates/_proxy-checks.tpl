{{/* Rejects values of the reverse proxy that cannot work or would open a way around it. Each takes the root. */}}

{{- define "proofgate.checks.proxy" -}}
{{- $proxy := .Values.proxy -}}
{{- $upstream := $proxy.upstream -}}
{{- if and .Values.verifier.enabled (not (include "proofgate.redisGiven" .)) -}}
{{- fail "proxy and verifier are both enabled without Redis: each would accept the same proof once, so a replayed request could pass; set redis.url or redis.urlSecret.name." -}}
{{- end -}}
{{- if not $upstream.url -}}
{{- fail "proxy.upstream.url is required: the API that verified requests go to." -}}
{{- end -}}
{{- if and (not (hasPrefix "https://" $upstream.url)) (or $upstream.serverName $upstream.clientSecretName (include "proofgate.caGiven" $upstream.ca)) -}}
{{- fail "proxy.upstream.ca, clientSecretName and serverName need an https URL in proxy.upstream.url." -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" "proxy.upstream.ca" "ref" $upstream.ca) -}}
{{- include "proofgate.checks.tls" (dict "name" "proxy.tls" "tls" $proxy.tls "why" "requests hold passports") -}}
{{- if and $proxy.tls.publicIssuer (not $proxy.tls.extraDnsNames) -}}
{{- fail "proxy.tls.extraDnsNames is required with proxy.tls.publicIssuer: it gives no certificate for names within the cluster, so name the host of the API." -}}
{{- end -}}
{{- include "proofgate.checks.clients" (dict "name" "proxy.tls" "tls" $proxy.tls) -}}
{{- if and (eq $proxy.tls.mode "none") (not $proxy.settings.externalOrigin) -}}
{{- fail "proxy.settings.externalOrigin is required with proxy.tls.mode none, such as https://api.shop.example: callers sign the scheme of whatever ends their TLS." -}}
{{- end -}}
{{- if and (ne $proxy.service.type "ClusterIP") (eq $proxy.tls.mode "none") (not $proxy.service.allowPlainHttp) -}}
{{- fail (printf "proxy.service.type is %s without TLS: passports would enter the cluster in the clear; set proxy.tls, or proxy.service.allowPlainHttp where a load balancer ends TLS and no other client reaches the port." $proxy.service.type) -}}
{{- end -}}
{{- include "proofgate.checks.spool" . -}}
{{- end -}}

{{/*
Bodies on disk. A kubelet that counts unlinked files, with project quotas, evicts a pod over the limit of its volume:
https://kubernetes.io/docs/concepts/storage/ephemeral-storage/
*/}}
{{- define "proofgate.checks.spool" -}}
{{- $proxy := .Values.proxy -}}
{{- $most := int64 (kindIs "invalid" $proxy.settings.maxSpool | ternary 1073741824 $proxy.settings.maxSpool) -}}
{{- $units := dict "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $size := $proxy.spool.sizeLimit -}}
{{- $limit := mul (regexFind "^[0-9]+" $size | int64) (index $units (regexFind "[A-Z]i$" $size)) -}}
{{- if lt $limit $most -}}
{{- fail (printf "proxy.spool.sizeLimit is %s, and bodies may take %d MiB (settings.maxSpool): a pod over its limit can be evicted; raise the one, or lower the other." $size (div (add $most 1048575) 1048576)) -}}
{{- end -}}
{{- end -}}
