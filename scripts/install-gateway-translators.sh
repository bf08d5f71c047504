#!/usr/bin/env bash
# Installs what scripts/make-gateway-dumps.sh runs, as .cache/gateways: the translators of Envoy Gateway and Istio, built from their Go modules, and
# istiod's chart.
# The first time takes some minutes. Kept as scripts/tool-cache.sh says.
set -euo pipefail

ENVOY_GATEWAY=v1.9.1
# Istio tags its releases without the `v` that Go modules want: this is the branch of 1.31 of that day.
ISTIO=v0.0.0-20260827124520-eed52ebb66ad

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

fail() {
  echo "install-gateway-translators: $1" >&2
  exit 1
}

# Runs a command that is quiet when it works, and says its last line when it does not.
quietly() {
  local what=$1 output
  shift
  output=$("$@" 2>&1) || fail "$what: $(tail -n 1 <<<"$output")"
}

stamp=$(cat "$0" "$root"/test/gateways/istio/*_test.go | sha256sum | cut -d ' ' -f 1)
link_tools gateways "$stamp" && exit 0
command -v go >/dev/null || fail 'Go is not installed'
work=$(mktemp -d)
cache=$(unfinished_tools gateways)
trap 'rm -rf "$work" "$cache"' EXIT

quietly 'Envoy Gateway' env GOBIN="$cache" go install -trimpath "github.com/envoyproxy/gateway/cmd/egctl@$ENVOY_GATEWAY"

cp "$root"/test/gateways/istio/*_test.go "$work"
cd "$work"
quietly 'Istio' go mod init proofgate.example/istio
quietly 'Istio' go get "istio.io/istio@$ISTIO"
quietly 'Istio' go mod tidy
quietly 'Istio' go test -trimpath -c -o "$cache/istio" .

# Istio's chart has the templates of its injection.
chart=$(go list -m -f '{{ .Dir }}' istio.io/istio)/manifests/charts/istio-control/istio-discovery
cp -r "$chart" "$cache/istiod"
chmod -R u+w "$cache/istiod"

keep_tools gateways "$stamp" "$cache"
