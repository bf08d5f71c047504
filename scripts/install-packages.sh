#!/usr/bin/env bash
# Installs the npm packages of the lock file, or says in one line what is missing.
set -euo pipefail

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  echo 'error: node_missing: install Node.js 20.19 or later with npm, then run make again' >&2
  exit 1
fi
if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; then
  echo "error: node_too_old: Node.js 20.19 or later is needed, this is $(node --version)" >&2
  exit 1
fi
echo "install-packages: installing npm packages" >&2
npm ci --no-audit --no-fund --loglevel=error
