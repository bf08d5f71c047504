#!/usr/bin/env bash
# Makes sure that the programs the tests run are there (redis-server, openssl, zsh, fish, chromium-headless-shell, nginx, PostgreSQL 14 or later, libfaketime, venv, beside Go a C compiler, beside Java OkHttp): from the system's
# packages where the rights are, otherwise with one clear line each.
set -euo pipefail

# Debian keeps each version's server programs in a folder of its own, off the path.
has_postgres() {
  local program
  for program in initdb postgres; do
    command -v "$program" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$program" >/dev/null || return 1
  done
}

# A library, below the folder of the machine's architecture.
has_faketime() {
  compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || [ -e /usr/lib/faketime/libfaketimeMT.so.1 ]
}

# The first five have Debian packages of the same names; `postgresql` is the version that the system has.
missing_packages() {
  local program
  for program in redis-server openssl zsh fish chromium-headless-shell; do
    command -v "$program" >/dev/null || echo "$program"
  done
  has_postgres || echo postgresql
  has_faketime || echo libfaketime
  # Debian has it in a folder that is not on every user's path.
  command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || echo nginx
  # Envoy is installed into a virtual environment of Python.
  python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  # With Java the extended tests send requests with OkHttp.
  ! command -v java >/dev/null || [ -e /usr/share/java/okhttp.jar ] || echo libokhttp-java
  # With Go the extended tests build SPIRE, whose SQLite is C.
  command -v go >/dev/null || return 0
  command -v gcc >/dev/null || echo gcc
  [ -e /usr/include/stdlib.h ] || echo libc6-dev
}

mapfile -t missing < <(missing_packages)
[ "${#missing[@]}" -eq 0 ] && exit 0

# Debian starts the services that it installs unless this file says that they must not. A file of the system's own stays.
deny_services() {
  local policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] && return 0
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  trap "rm -f $policy" EXIT
}

install_packages() {
  apt-get update -qq
  # The tests start servers of their own: no cluster is made, and nothing is started.
  deny_services
  if [[ " $* " == *" postgresql "* ]]; then
    apt-get install -y -qq --no-install-recommends postgresql-common
    sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  fi
  apt-get install -y -qq --no-install-recommends "$@"
}

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  echo "install-system-packages: installing ${missing[*]}" >&2
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  # In a shell of its own: `set -e` is off inside a condition.
  export -f install_packages deny_services
  if bash -euo pipefail -c 'install_packages "$@"' - "${missing[@]}" >"$log" 2>&1; then
    mapfile -t missing < <(missing_packages)
    [ "${#missing[@]}" -eq 0 ] && exit 0
  fi
  tail -n 3 "$log" >&2
fi
for package in "${missing[@]}"; do
  echo "error: program_missing: install $package (Debian: apt-get install $package), then run make again" >&2
done
exit 1
