{{/* Rejects values of enforcement points that cannot work or would allow a replay: each takes (dict "root" $ "component" "verifier"). */}}

{{- define "proofgate.checks.point" -}}
{{- include "proofgate.checks.trust" . -}}
{{- include "proofgate.checks.source" . -}}
{{- include "proofgate.checks.redis" .root -}}
{{- include "proofgate.checks.replay" . -}}
{{- include "proofgate.checks.state" . -}}
{{- end -}}

{{- define "proofgate.checks.trust" -}}
{{- $name := .component -}}
{{- $values := index .root.Values $name -}}
{{- $trust := $values.trust -}}
{{- if not $values.authSite -}}
{{- fail (printf "%s.authSite is required: a verifier serves one Auth Site, and takes no other's bundle." $name) -}}
{{- end -}}
{{- if and $trust.existingConfigMap (or $trust.bundleKeys $trust.freshnessKeys $trust.breakGlassKeys) -}}
{{- fail (printf "%s.trust.existingConfigMap stands in place of %s.trust.bundleKeys, freshnessKeys and breakGlassKeys: give one of the two." $name $name) -}}
{{- end -}}
{{- if and (not $trust.existingConfigMap) (or $trust.bundleKeyFiles $trust.freshnessKeyFiles $trust.breakGlassKeyFiles) -}}
{{- fail (printf "%s.trust.bundleKeyFiles, freshnessKeyFiles and breakGlassKeyFiles name keys of %s.trust.existingConfigMap: name that ConfigMap, too." $name $name) -}}
{{- end -}}
{{- if not (or $trust.bundleKeys $trust.bundleKeyFiles) -}}
{{- fail (printf "%s.trust needs at least one bundle key (bundleKeys, or existingConfigMap with bundleKeyFiles): a verifier loads only bundles that a known key signed." $name) -}}
{{- end -}}
{{- if ne (empty (concat (keys $trust.breakGlassKeys) $trust.breakGlassKeyFiles)) (empty $trust.breakGlassConfigMap) -}}
{{- fail (printf "%s.trust.breakGlassConfigMap and break-glass keys need each other: name the ConfigMap of the statement, and the keys that may sign it." $name) -}}
{{- end -}}
{{- range $file, $content := $trust.breakGlassKeys -}}
{{- if or (hasKey $trust.bundleKeys $file) (hasKey $trust.freshnessKeys $file) -}}
{{- fail (printf "%s.trust.breakGlassKeys has the name %s of another key: a break-glass key signs nothing else, so rename it." $name $file) -}}
{{- end -}}
{{- end -}}
{{- range $file, $content := $trust.freshnessKeys -}}
{{- if and (hasKey $trust.bundleKeys $file) (ne (index $trust.bundleKeys $file) $content) -}}
{{- fail (printf "%s.trust.bundleKeys and freshnessKeys hold two different keys under the name %s: rename one of them." $name $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "proofgate.checks.source" -}}
{{- $name := .component -}}
{{- $values := index .root.Values $name -}}
{{- $source := $values.source -}}
{{- $url := include "proofgate.point.controlUrl" . -}}
{{- if and (include "proofgate.point.ownControl" .) .root.Values.control.tls.publicIssuer (regexMatch "^https?://[^/]+/" $url) -}}
{{- fail (printf "%s.source.control.url is required where control.tls.publicIssuer is set and the first of control.publicUrls has a path: verifiers follow Control at an address without one." $name) -}}
{{- end -}}
{{- if not (or $url $source.volume) -}}
{{- fail (printf "%s.source is required: set source.control.url, enable this release's Control, or give source.volume with the signed bundle." $name) -}}
{{- end -}}
{{- if and $url (not $source.control.tokenSecret.name) -}}
{{- fail (printf "%s.source.control.tokenSecret.name is required: Control hands bundles only to a target that shows its token." $name) -}}
{{- end -}}
{{- if and (hasPrefix "http://" $url) (not $values.settings.allowPlainHttp) -}}
{{- fail (printf "%s.source.control would send the target's token in the clear: use https, or set %s.settings.allowPlainHttp where something else encrypts it." $name $name) -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" (printf "%s.source.control.ca" $name) "ref" $source.control.ca) -}}
{{- end -}}

{{/* Takes the root. */}}
{{- define "proofgate.checks.redis" -}}
{{- $redis := .Values.redis -}}
{{- if and $redis.url $redis.urlSecret.name -}}
{{- fail "redis.url and redis.urlSecret are the same setting: give one of them." -}}
{{- end -}}
{{- /* A user alone, with the password in a Secret, is no secret. */ -}}
{{- if and (contains "@" $redis.url) (not (and $redis.passwordSecret.name (regexMatch "^[a-z-]+://[^:@/?#]*@[^@]*$" $redis.url))) -}}
{{- fail "redis.url holds a user or password, which everybody who may read pods would see: name the password's Secret in redis.passwordSecret, or put the URL into a Secret and name it in redis.urlSecret." -}}
{{- end -}}
{{- if and $redis.passwordSecret.name (not (include "proofgate.redisGiven" .)) -}}
{{- fail "redis.passwordSecret is for a Redis, and none is named: set redis.url or redis.urlSecret.name." -}}
{{- end -}}
{{- if regexMatch "[?#]" $redis.url -}}
{{- fail "redis.url has a query or a fragment, and the verifier takes neither: a user and a password stand before the host, in a Secret that redis.urlSecret names." -}}
{{- end -}}
{{- include "proofgate.checks.ca" (dict "name" "redis.ca" "ref" $redis.ca) -}}
{{- end -}}

{{/* All pods must share one replay store: separate memory stores would accept a proof once each. */}}
{{- define "proofgate.checks.replay" -}}
{{- $name := .component -}}
{{- $values := index .root.Values $name -}}
{{- $scaling := dig "autoscaling" "enabled" false $values -}}
{{- $why := "verifiers without Redis do not know each other's used proofs, so a replayed request could pass" -}}
{{- $mend := "set redis.url or redis.urlSecret.name" -}}
{{- if include "proofgate.redisGiven" .root -}}
{{- if hasKey $values.settings "maxReplayRecords" -}}
{{- fail (printf "%s.settings.maxReplayRecords is for a verifier without Redis: Redis is bounded by its maxmemory." $name) -}}
{{- end -}}
{{- else -}}
{{- if eq (default "" $values.mode) "sidecar" -}}
{{- fail (printf "%s.mode is sidecar without Redis: a gateway may have several pods, and %s; %s." $name $why $mend) -}}
{{- end -}}
{{- if $scaling -}}
{{- fail (printf "%s.autoscaling is enabled without Redis: %s; %s, or leave autoscaling off." $name $why $mend) -}}
{{- end -}}
{{- if gt (int $values.replicas) 1 -}}
{{- fail (printf "%s.replicas is %d without Redis: %s; %s, or keep one replica." $name (int $values.replicas) $why $mend) -}}
{{- end -}}
{{- if and $values.strategy (ne (default "" $values.strategy.type) "Recreate") -}}
{{- fail (printf "%s.strategy replaces pods while others run (maxSurge > 0, or one that still drains) without Redis: %s; %s, or use type Recreate." $name $why $mend) -}}
{{- end -}}
{{- if gt (int (default 1 $values.settings.workers)) 1 -}}
{{- fail (printf "%s.settings.workers is %d without Redis: %s; %s, or keep one worker." $name (int $values.settings.workers) $why $mend) -}}
{{- end -}}
{{- if not $values.persistence.enabled -}}
{{- fail (printf "%s.persistence is required without Redis: a new pod would not know which proofs were used before, or which bundle was the latest; enable it, or %s." $name $mend) -}}
{{- end -}}
{{- range $setting, $value := $values.settings -}}
{{- if hasPrefix "redis" $setting -}}
{{- fail (printf "%s.settings.%s is about a Redis that is not there: %s." $name $setting $mend) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Only one process can use a state directory. */}}
{{- define "proofgate.checks.state" -}}
{{- $name := .component -}}
{{- $values := index .root.Values $name -}}
{{- if $values.persistence.enabled -}}
{{- $why := "a state directory belongs to one verifier at a time" -}}
{{- if eq (default "" $values.mode) "sidecar" -}}
{{- fail (printf "%s.persistence is enabled with mode sidecar: %s, and a gateway may have several pods; leave it off, since Redis keeps the mark." $name $why) -}}
{{- end -}}
{{- if or (gt (int $values.replicas) 1) (dig "autoscaling" "enabled" false $values) -}}
{{- fail (printf "%s.persistence is enabled with more than one replica: %s; leave it off, since Redis keeps the mark." $name $why) -}}
{{- end -}}
{{- if and $values.strategy (ne (default "" $values.strategy.type) "Recreate") -}}
{{- fail (printf "%s.persistence is enabled with a strategy that runs two pods: %s; use type Recreate, or leave persistence off." $name $why) -}}
{{- end -}}
{{- end -}}
{{- end -}}
