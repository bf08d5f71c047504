#!/usr/bin/env bash
# Installs what the tests make images of, in the place of the Dockerfile's base image, as .cache/image: Node.js 22 from its npm package,
# and the libraries that it needs from Debian's packages, for each processor; the schema of bills of materials; and the processor's
# stand-in for arm64. Kept as scripts/tool-cache.sh says.
# Without apt it prints one line and changes nothing: the tests skip then.
set -euo pipefail

NODE=22.23.3
CYCLONEDX_LIBRARY=10.3.0
# Whose libraries node and native modules load, with the package that has their licences.
DEBIAN_PACKAGES=(libc6 libgcc-s1 libstdc++6 gcc-12-base)

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/tool-cache.sh"

fail() {
  echo "install-image-tools: $1" >&2
  exit 1
}

# Runs a command that is quiet when it works, and says its last line when it does not.
quietly() {
  local what=$1 output
  shift
  output=$("$@" 2>&1) || fail "$what: $(tail -n 1 <<<"$output")"
}

stamp=$(sha256sum "$0" | cut -d ' ' -f 1)
link_tools image "$stamp" && exit 0

for program in apt-get dpkg-deb; do
  if ! command -v "$program" >/dev/null; then
    echo "install-image-tools: this is no Debian ($program is not there): test/image skips" >&2
    exit 0
  fi
done

echo "install-image-tools: downloading Node.js $NODE and libraries" >&2
work=$(mktemp -d)
cache=$(unfinished_tools image)
trap 'rm -rf "$work" "$cache"' EXIT

# Lists of packages of a processor, apart from those of this machine.
apt() {
  local cpu=$1
  shift
  mkdir -p "$work/apt-$cpu/lists/partial" "$work/apt-$cpu/cache/archives/partial"
  touch "$work/apt-$cpu/status"
  apt-get -qq -o "APT::Architecture=$cpu" -o "APT::Architectures=$cpu" -o "Dir::State::lists=$work/apt-$cpu/lists" \
    -o "Dir::State::status=$work/apt-$cpu/status" -o "Dir::Cache=$work/apt-$cpu/cache" -o APT::Sandbox::User=root "$@"
}

# Unpacks a package, and lists it as dpkg would.
unpack() {
  local package=$1 to=$2 name
  name=$(dpkg-deb --field "$package" Package)
  dpkg-deb --extract "$package" "$to"
  mkdir -p "$to/var/lib/dpkg/info"
  { dpkg-deb --field "$package" && echo; } >>"$to/var/lib/dpkg/status"
  dpkg-deb --fsys-tarfile "$package" | tar --list | sed 's#^\.##; s#/$##' >"$to/var/lib/dpkg/info/$name.list"
}

# Usage: base PROCESSOR OF-NODE
base() {
  local cpu=$1 node_cpu=$2 to="$cache/$1"
  mkdir -p "$work/$cpu" "$to/usr/local/bin"
  quietly "node-linux-$node_cpu" npm pack --silent --pack-destination "$work/$cpu" "node-linux-$node_cpu@$NODE"
  tar --extract --gzip --directory "$work/$cpu" --file "$work/$cpu/node-linux-$node_cpu-$NODE.tgz"
  cp "$work/$cpu/package/bin/node" "$to/usr/local/bin/node"
  cp "$work/$cpu/package/LICENSE" "$to/usr/local/LICENSE"
  quietly 'apt-get update' apt "$cpu" update
  (cd "$work/$cpu" && quietly 'apt-get download' apt "$cpu" download "${DEBIAN_PACKAGES[@]}")
  for package in "$work/$cpu"/*.deb; do unpack "$package" "$to"; done
}

base amd64 x64
base arm64 arm64
case $(uname -m) in
  aarch64) ln -s arm64/usr/local/bin/node "$cache/node" ;;
  *) ln -s amd64/usr/local/bin/node "$cache/node" ;;
esac

quietly 'cyclonedx-library' npm pack --silent --pack-destination "$work" "@cyclonedx/cyclonedx-library@$CYCLONEDX_LIBRARY"
mkdir "$cache/schemas"
tar --extract --gzip --directory "$cache/schemas" --strip-components 3 --wildcards \
  --file "$work/cyclonedx-cyclonedx-library-$CYCLONEDX_LIBRARY.tgz" 'package/res/schema/*.schema.json'

# Runs programs of arm64 on another processor.
quietly 'qemu-user-static' bash -c 'cd "$1" && apt-get -qq update && apt-get -qq download qemu-user-static' - "$work"
dpkg-deb --fsys-tarfile "$work"/qemu-user-static_*.deb | tar --extract --to-stdout ./usr/bin/qemu-aarch64-static >"$cache/qemu-aarch64"
chmod +x "$cache/qemu-aarch64"

keep_tools image "$stamp" "$cache"
