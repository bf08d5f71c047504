#!/usr/bin/env bash
# Installs SPIRE for test/e2e/spire, as .cache/spire/bin, built as test/spire/go.mod says. Kept as scripts/tool-cache.sh says.
# Without Go it prints one line and changes nothing: the tests of SPIRE skip then.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

fail() {
  echo "install-spire: $1" >&2
  exit 1
}

# Runs a command that is quiet when it works, and says its last line when it does not.
quietly() {
  local what=$1 output
  shift
  output=$("$@" 2>&1) || fail "$what: $(tail -n 1 <<<"$output")"
}

# A change of this script, or of what it builds (go.sum, stubs), builds everything again.
stamp=$(find "$root/test/spire" "$0" -type f ! -name README.md | LC_ALL=C sort | xargs cat | sha256sum | cut -d ' ' -f 1)
link_tools spire "$stamp" && exit 0

if ! command -v go >/dev/null; then
  echo 'install-spire: Go is not installed: the tests of SPIRE skip' >&2
  exit 0
fi

cache=$(unfinished_tools spire)
trap 'rm -rf "$cache"' EXIT
mkdir "$cache/bin"
version=$(sed -n 's/^\tgithub.com\/spiffe\/spire v//p' "$root/test/spire/go.mod" | cut -d ' ' -f 1)
[ -n "$version" ] || fail 'test/spire/go.mod does not require SPIRE'
echo "install-spire: building SPIRE $version: up to 25 minutes the first time" >&2
# The server needs cgo for SQLite. The others use it too: otherwise their packages would be compiled twice.
CGO_ENABLED=1 quietly spire nice go -C "$root/test/spire" build -p 2 -trimpath -buildvcs=false \
  -ldflags "-s -w -X github.com/spiffe/spire/pkg/common/version.gittag=$version" -o "$cache/bin/" tool

keep_tools spire "$stamp" "$cache"
