#!/usr/bin/env bash
# Installs Caddy for test/e2e/forward-auth, as .cache/proxies: built from its Go module. nginx is a system package
# (scripts/install-system-packages.sh), Envoy and Traefik have scripts of their own. Kept as scripts/tool-cache.sh says.
# Without Go it prints one line and changes nothing: the tests of Caddy skip then.
set -euo pipefail

CADDY=v2.11.9

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

fail() {
  echo "install-proxies: $1" >&2
  exit 1
}

# Runs a command that is quiet when it works, and says its last line when it does not.
quietly() {
  local what=$1 output
  shift
  output=$("$@" 2>&1) || fail "$what: $(tail -n 1 <<<"$output")"
}

# A change of this script builds everything again.
stamp=$(sha256sum "$0" | cut -d ' ' -f 1)
link_tools proxies "$stamp" && exit 0

if ! command -v go >/dev/null; then
  echo 'install-proxies: Go is not installed: the tests of Caddy skip' >&2
  exit 0
fi

echo "install-proxies: building Caddy $CADDY: some minutes" >&2
cache=$(unfinished_tools proxies)
trap 'rm -rf "$cache"' EXIT
mkdir "$cache/bin"
# Static, so that it runs in any root directory.
GOBIN="$cache/bin" CGO_ENABLED=0 quietly caddy go install -trimpath "github.com/caddyserver/caddy/v2/cmd/caddy@$CADDY"

keep_tools proxies "$stamp" "$cache"
