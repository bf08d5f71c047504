#!/usr/bin/env bash
# Makes sure that the programs the tests run are there (redis-server, openssl): from the system's packages where the
# rights are, otherwise with one clear line each.
set -euo pipefail

# Their Debian packages have the same names.
missing=()
for program in redis-server openssl; do
  command -v "$program" >/dev/null || missing+=("$program")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if { apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    exit 0
  fi
  tail -n 3 "$log" >&2
fi
for program in "${missing[@]}"; do
  echo "error: program_missing: install $program (Debian: apt-get install $program), then run make again" >&2
done
exit 1
