#!/usr/bin/env bash
# Installs Keycloak, which test/e2e/foreign starts, as .cache/keycloak, and configures it for a database in memory, so that a start is short.
# Kept as scripts/tool-cache.sh says. Without a JDK and Maven it prints one line and changes nothing: the test of Keycloak skips then.
set -euo pipefail

VERSION=26.4.5
SHA256=74fed80ab67607c86995824ad4b965f53cca0a706e2aeded45e173d3ccb0b24d

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

skip() {
  echo "install-keycloak: $1: the test of Keycloak skips" >&2
  exit 0
}

stamp=$(sha256sum "$0" | cut -d ' ' -f 1)
link_tools keycloak "$stamp" && exit 0

command -v javac >/dev/null && command -v mvn >/dev/null || skip 'a JDK and Maven are not installed'
folder=$(unfinished_tools keycloak)
trap 'rm -rf "$folder"' EXIT

echo "install-keycloak: downloading Keycloak $VERSION, 156 MB" >&2
mvn --batch-mode --quiet -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
  "-Dartifact=org.keycloak:keycloak-quarkus-dist:$VERSION:tar.gz" "-DoutputDirectory=$folder" >&2 || skip 'Maven'
archive=$folder/keycloak-quarkus-dist-$VERSION.tar.gz
echo "$SHA256  $archive" | sha256sum --check --quiet >&2 || skip 'the archive is another'
tar -xzf "$archive" -C "$folder" --strip-components 1
rm "$archive"
"$folder/bin/kc.sh" build --db=dev-mem >"$folder/build.log" 2>&1 || skip "kc.sh build: $(head -n 1 "$folder/build.log")"

keep_tools keycloak "$stamp" "$folder"
