#!/usr/bin/env bash
# Installs what tests run of Kubernetes, as .cache/kubernetes: kube-apiserver, etcd and kubectl, built as test/kubernetes/server/go.mod says,
# and the definitions of custom resources. Kept as scripts/tool-cache.sh says.
# Without Go it prints one line and changes nothing: the tests skip then.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"
server="$root/test/kubernetes/server"

fail() {
  echo "install-kubernetes: $1" >&2
  exit 1
}

# Runs a command that is quiet when it works, and says its last line when it does not.
quietly() {
  local what=$1 output
  shift
  output=$("$@" 2>&1) || fail "$what: $(tail -n 1 <<<"$output")"
}

# The same versions as the schemas of the chart's tests: module and version, and where in it the definitions are.
modules=$(sed -n "/^CRD_MODULES=(/,/^)/p" "$root/scripts/install-helm-tools.sh")
source /dev/stdin <<<"$modules"
[ "${#CRD_MODULES[@]}" -gt 0 ] || fail 'install-helm-tools.sh names no custom resources'

# A change of this script, or of what it builds, builds everything again.
stamp=$(cat "$0" "$server/go.mod" "$server/go.sum" <(echo "$modules") | sha256sum | cut -d ' ' -f 1)
link_tools kubernetes "$stamp" && exit 0

if ! command -v go >/dev/null; then
  echo 'install-kubernetes: Go is not installed: test/kubernetes skips' >&2
  exit 0
fi

cd "$server"
cache=$(unfinished_tools kubernetes)
trap 'rm -rf "$cache"' EXIT
mkdir "$cache/bin"
quietly 'modules' go mod download k8s.io/kubernetes go.etcd.io/etcd/server/v3
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
# Without these both say that they are version 0.0.0.
named='k8s.io/component-base/version'
flags="-s -w -X $named.gitVersion=$version -X $named.gitMajor=$major -X $named.gitMinor=$minor"
echo "install-kubernetes: building kube-apiserver and kubectl $version, and etcd: some minutes" >&2
export CGO_ENABLED=0
for program in kube-apiserver kubectl; do
  quietly $program go build -trimpath -ldflags "$flags" -o "$cache/bin/$program" k8s.io/kubernetes/cmd/$program
done
quietly etcd go build -trimpath -ldflags '-s -w' -o "$cache/bin/etcd" go.etcd.io/etcd/server/v3

for line in "${CRD_MODULES[@]}"; do
  read -r module path <<<"$line"
  # Elsewhere than here: these modules are nothing that the server is built from.
  quietly "$module" env -C / go mod download "$module"
  from="$(go env GOMODCACHE)/$module/$path"
  [ -e "$from" ] || fail "$module: $path is not in the module"
  to="$cache/custom-resources/${module%%@*}"
  mkdir -p "$to"
  if [ -d "$from" ]; then cp "$from"/*.yaml "$to"; else cp "$from" "$to"; fi
done
chmod -R u+w "$cache/custom-resources"

keep_tools kubernetes "$stamp" "$cache"
