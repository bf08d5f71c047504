#!/usr/bin/env bash
# Installs actionlint, which test/docs/github.extended.test.ts runs, as .cache/actionlint: built from its Go module. Kept as
# scripts/tool-cache.sh says. Without Go it prints one line and changes nothing: the test of the workflows skips then.
set -euo pipefail

ACTIONLINT=v1.7.12

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

# A change of this script builds it again.
stamp=$(sha256sum "$0" | cut -d ' ' -f 1)
link_tools actionlint "$stamp" && exit 0

if ! command -v go >/dev/null; then
  echo 'install-actionlint: Go is not installed: the test of the workflows skips' >&2
  exit 0
fi

cache=$(unfinished_tools actionlint)
trap 'rm -rf "$cache"' EXIT
if ! output=$(GOBIN="$cache/bin" go install -trimpath "github.com/rhysd/actionlint/cmd/actionlint@$ACTIONLINT" 2>&1); then
  echo "install-actionlint: $(tail -n 1 <<<"$output")" >&2
  exit 1
fi
keep_tools actionlint "$stamp" "$cache"
