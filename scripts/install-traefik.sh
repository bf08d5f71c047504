#!/usr/bin/env bash
# Installs Traefik, which test/e2e/forward-auth runs, as .cache/traefik/bin/traefik, built as scripts/traefik/go.mod says. Kept as
# scripts/tool-cache.sh says. Without Go it prints one line and changes nothing: the tests of Traefik skip then.
set -euo pipefail

LEGO=github.com/go-acme/lego/v5@v5.4.1
LEGO_SUM=h1:Jt6xAP9xQrJ3SLLGgxejfDDd3pzdrmuLCWe4oTqHHQc=

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

fail() {
  echo "install-traefik: $1" >&2
  exit 1
}

# Runs a command that is quiet when it works, and says its last line when it does not.
quietly() {
  local what=$1 output
  shift
  output=$("$@" 2>&1) || fail "$what: $(tail -n 1 <<<"$output")"
}

# A change of this script, or of what it builds, builds everything again.
stamp=$(find "$root/scripts/traefik" "$0" -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -d ' ' -f 1)
link_tools traefik "$stamp" && exit 0

if ! command -v go >/dev/null; then
  echo 'install-traefik: Go is not installed: the tests of Traefik skip' >&2
  exit 0
fi

work=$(mktemp -d)
cache=$(unfinished_tools traefik)
trap 'chmod -R u+w "$work"; rm -rf "$work" "$cache"' EXIT
cp -r "$root/scripts/traefik/." "$work"
cd "$work"

# Of lego, which issues certificates, everything but its DNS providers: 900 packages that nothing here runs.
lego=$(env -C / go mod download -json "$LEGO") || fail "$LEGO: $(grep -o '"Error": .*' <<<"$lego")"
grep -q "\"Sum\": \"$LEGO_SUM\"" <<<"$lego" || fail "$LEGO: is not the module with the checksum $LEGO_SUM"
cp -r "$(go env GOMODCACHE)/$LEGO" lego
chmod -R u+w lego
rm -rf lego/providers/dns
mv dns lego/providers/dns

mkdir "$cache/bin"
version=$(sed -n 's/^require github.com\/traefik\/traefik\/v3 v//p' go.mod)
echo "install-traefik: building Traefik $version: some minutes" >&2
# Static, so that it runs in any root directory.
CGO_ENABLED=0 quietly traefik nice go build -p 2 -trimpath -ldflags "-s -w -X github.com/traefik/traefik/v3/pkg/version.Version=$version" \
  -o "$cache/bin/traefik" github.com/traefik/traefik/v3/cmd/traefik

keep_tools traefik "$stamp" "$cache"
