#!/usr/bin/env bash
# Lets the control planes of Envoy Gateway and Istio themselves translate the manifests below envoy/, and writes what they make of them to
# test/gateways/dumps (or the folder that is given), as Envoy's config_dump shows it; and pods into which Istio injected the chart's sidecar. Both are built from their Go modules into
# .cache/gateways (scripts/install-gateway-translators.sh). Run it after a change of those manifests, and read the difference.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cache="$root/.cache/gateways"
helm="$root/.cache/helm/bin/helm"
out=${1:-$root/test/gateways/dumps}

fail() {
  echo "make-gateway-dumps: $1" >&2
  exit 1
}

"$root/scripts/install-gateway-translators.sh"
"$root/scripts/install-helm-tools.sh"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Certificates that Envoy Gateway looks into before it refers to their secrets. They are in no dump.
secrets() {
  local names=(api-tls verifier-ca gateway-client) name
  for name in "${names[@]}"; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 -days 2 -subj "/CN=$name" \
      -addext 'subjectAltName=DNS:api.shop.example' -keyout "$work/$name.key" -out "$work/$name.crt" 2>/dev/null
    printf -- '---\napiVersion: v1\nkind: Secret\nmetadata: { name: %s, namespace: gateway }\ntype: kubernetes.io/tls\ndata:\n' "$name"
    printf '  tls.crt: %s\n  tls.key: %s\n  ca.crt: %s\n' "$(base64 -w 0 "$work/$name.crt")" \
      "$(base64 -w 0 "$work/$name.key")" "$(base64 -w 0 "$work/$name.crt")"
  done
}

join() { # FILE… of envoy/, and others by their path: one YAML stream
  local file
  for file in "$@"; do
    printf -- '---\n'
    sed '1{/^---$/d}' "$root/$file" # WHY: Envoy Gateway reads no empty document
  done
}

# Lists of pilot's are in no order of their own.
ordered() {
  node -e 'const dump = JSON.parse(fs.readFileSync(0));
    const text = (one) => JSON.stringify(one);
    const lists = dump.configs.flatMap((one) => Object.values(one)).filter(Array.isArray);
    for (const list of lists) list.sort((a, b) => (text(a) < text(b) ? -1 : 1));
    process.stdout.write(`${JSON.stringify(dump, undefined, 1)}\n`)'
}

envoy_gateway() { # SET FILE…
  local set=$1
  shift
  record "$set" "$@"
  { join "$@" test/gateways/cluster.yaml && secrets; } >"$work/$set.yaml"
  "$cache/egctl" experimental translate --from gateway-api --to xds --output json --file "$work/$set.yaml" \
    --namespace envoy-gateway-system >"$work/$set.json" 2>"$work/log" || fail "$set: $(tail -n 1 "$work/log")"
  node -e 'process.stdout.write(JSON.stringify(Object.values(JSON.parse(fs.readFileSync(0)).xds)[0]))' <"$work/$set.json" |
    ordered >"$out/$set.json"
}

istio() { # SET PROXY FILE…
  local set=$1 proxy=$2
  shift 2
  record "$set" envoy/istio/mesh-config.yaml "$@"
  join "$@" test/gateways/mesh.yaml >"$work/$set.yaml"
  MANIFESTS="$work/$set.yaml" VALUES="$root/envoy/istio/mesh-config.yaml" PROXY=$proxy OUT="$work/$set.json" \
    "$cache/istio" -test.run '^TestTranslate$' >"$work/log" 2>&1 || fail "$set: $(grep -m 1 -i 'error\|fatal\|translate_test' "$work/log" || tail -n 1 "$work/log")"
  ordered <"$work/$set.json" >"$out/$set.json"
}

# What Istio's injection makes of pods that ask for the chart's sidecar, with the values for istiod that the chart has.
injected() { # NATIVE FILE
  "$helm" template pg "$root/helm/proofgate" --namespace gateway --values "$root/test/helm/values/sidecar-istio.yaml" \
    --show-only templates/verifier/sidecar.yaml >"$work/sidecar.yaml"
  (cd "$root" && node -e 'const { data } = require("yaml").parse(fs.readFileSync(0, "utf8"));
    process.stdout.write(data["istiod-values.yaml"])') <"$work/sidecar.yaml" >"$work/istiod-values.yaml"
  "$helm" template istiod "$cache/istiod" --namespace istio-system --values "$work/istiod-values.yaml" \
    --show-only templates/istiod-injector-configmap.yaml >"$work/injector.yaml" 2>"$work/log" || fail "istiod: $(tail -n 1 "$work/log")"
  ENABLE_NATIVE_SIDECARS=$1 INJECTOR="$work/injector.yaml" MANIFESTS="$root/test/gateways/pods.yaml" OUT="$2" \
    "$cache/istio" -test.run '^TestInject$' >"$work/log" 2>&1 || fail "injection: $(tail -n 1 "$work/log")"
}

# Which manifests a dump was made from: a test holds it to them.
record() { # SET FILE…
  local set=$1
  shift
  printf '%s  %s\n' "$(cd "$root" && cat "$@" | sed '/^ *#/d' | sha256sum | cut -d ' ' -f 1)" "$set" >>"$work/made-from"
}

for place in socket mtls; do
  envoy_gateway "envoy-gateway-$place" envoy/envoy-gateway/gateway.yaml \
    "envoy/envoy-gateway/verifier-$place.yaml" envoy/envoy-gateway/route.yaml
  istio "istio-gateway-$place" gateway envoy/istio/gateway.yaml envoy/istio/route.yaml "envoy/istio/verifier-$place.yaml"
done
istio istio-sidecar-loopback sidecar envoy/istio/sidecar.yaml envoy/istio/verifier-loopback.yaml
istio egress-istio egress envoy/istio/egress.yaml
injected true "$out/injected-native.yaml"
injected false "$out/injected-containers.yaml"
cp "$work/made-from" "$out/made-from.sha256"
