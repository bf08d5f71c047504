#!/usr/bin/env bash
# Makes sure that redis-server is there, from the system's packages where the rights are; otherwise one clear line.
set -euo pipefail

command -v redis-server >/dev/null && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if { apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server; } >"$log" 2>&1; then
    exit 0
  fi
  tail -n 3 "$log" >&2
fi
echo 'error: redis_missing: install redis-server 7 or later (Debian: apt-get install redis-server), then run make again' >&2
exit 1
