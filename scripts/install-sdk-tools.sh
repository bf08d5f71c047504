#!/usr/bin/env bash
# Installs what builds and tests the SDKs, and libraries of other callers: of npm as .cache/sdk-node/node_modules; OkHttp and Spring as
# .cache/sdk-java/jars, a library for OAuth as .cache/sdk-java-clients/jars; a signer as .cache/sdk-rust/rust-signer; Python packages as
# .cache/sdk-python/packages, a folder for PYTHONPATH. Kept as scripts/tool-cache.sh says. Without Python 3.9 or pip it prints one line,
# and the tests of the Python SDK skip; so do those of Java without a JDK and Maven, and those of the signer without Cargo.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

install_node() {
  local clients=$root/scripts/sdk/clients stamp folder
  stamp=$(cat "$0" "$clients"/package*.json | sha256sum | cut -d ' ' -f 1)
  link_tools sdk-node "$stamp" && return 0
  echo "install-sdk-tools: downloading npm packages" >&2
  folder=$(unfinished_tools sdk-node)
  cp "$clients"/package*.json "$folder/"
  if (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --silent); then
    keep_tools sdk-node "$stamp" "$folder"
  else
    rm -rf "$folder"
    echo "install-sdk-tools: npm: the tests with clients of Node.js skip" >&2
  fi
}
install_node

# Usage: install_jars NAME POM DIGESTS: the dependencies of the POM, with these digests, as .cache/NAME/jars.
install_jars() {
  local name=$1 pom=$2 sums=$3 stamp folder
  if ! command -v javac >/dev/null || ! command -v mvn >/dev/null; then
    echo "install-sdk-tools: a JDK and Maven are not installed: the tests with $name skip" >&2
    return 0
  fi
  stamp=$(cat "$0" "$pom" "$sums" | sha256sum | cut -d ' ' -f 1)
  link_tools "$name" "$stamp" && return 0
  echo "install-sdk-tools: downloading jars of $name" >&2
  folder=$(unfinished_tools "$name")
  if mvn --batch-mode --quiet -Dstyle.color=never --file "$pom" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    "-DoutputDirectory=$folder/jars" >&2 && (export LC_ALL=C && cd "$folder/jars" && sha256sum ./* | diff "$sums" - >&2); then
    keep_tools "$name" "$stamp" "$folder"
  else
    rm -rf "$folder"
    echo "install-sdk-tools: Maven: the tests with $name skip" >&2
  fi
}
install_jars sdk-java "$root/sdk/java/pom.xml" "$root/scripts/sdk/java-jars.sha256"
install_jars sdk-java-clients "$root"/scripts/sdk/java-clients/{pom.xml,jars.sha256}

# Cargo.lock has the digests of the crates.
install_rust() {
  local source=$root/scripts/sdk/rust-signer stamp folder
  if ! command -v cargo >/dev/null; then
    echo "install-sdk-tools: Cargo is not installed: the tests with a signer in Rust skip" >&2
    return 0
  fi
  stamp=$(cat "$0" "$source"/Cargo.* "$source/src/main.rs" | sha256sum | cut -d ' ' -f 1)
  link_tools sdk-rust "$stamp" && return 0
  echo "install-sdk-tools: compiling a signer in Rust" >&2
  folder=$(unfinished_tools sdk-rust)
  if CARGO_TARGET_DIR=$folder/target cargo build --quiet --release --locked --manifest-path "$source/Cargo.toml" >&2; then
    mv "$folder/target/release/rust-signer" "$folder/"
    rm -rf "$folder/target"
    keep_tools sdk-rust "$stamp" "$folder"
  else
    rm -rf "$folder"
    echo "install-sdk-tools: Cargo: the tests with a signer in Rust skip" >&2
  fi
}
install_rust

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
