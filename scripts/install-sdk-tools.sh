#!/usr/bin/env bash
# Installs the Python packages that build and test the SDKs, as .cache/sdk-python: a folder for PYTHONPATH.
# Kept as scripts/tool-cache.sh says. Without Python 3.9 or pip it prints one line, and the tests of the Python SDK skip.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

skip() {
  echo "install-sdk-tools: $1: the tests of the Python SDK skip" >&2
  exit 0
}

packages=$root/scripts/sdk/python-packages.txt
python3 -c 'import pip, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip 'Python 3.9 with pip is not installed'
stamp=$({ cat "$0" "$packages" && python3 --version; } | sha256sum | cut -d ' ' -f 1)
link_tools sdk-python "$stamp" && exit 0

echo "install-sdk-tools: downloading Python packages" >&2
cache=$(unfinished_tools sdk-python)
trap 'rm -rf "$cache"' EXIT
output=$(python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
  --target "$cache/packages" --requirement "$packages" 2>&1) || skip "pip: $(tail -n 1 <<<"$output")"
keep_tools sdk-python "$stamp" "$cache"
