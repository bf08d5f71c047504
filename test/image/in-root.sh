#!/bin/sh
# Runs a command as a container of an image would: ROOT is all that there is, for reading alone, with /proc, /dev and the directories of
# this machine that are named, for writing. Needs the rights to mount.
# Usage: in-root.sh ROOT USER:GROUP "DIRECTORY…" COMMAND [ARGUMENT…]
if [ "$1" != inside ]; then
  exec unshare --mount --propagation private "$0" inside "$@"
fi
set -eu
root=$2
user=$3
shared=$4
shift 4

# A folder that is there on every machine, and that nothing in the root asks for: no other has to be made and removed.
above=/sys
mount -t tmpfs -o mode=755 none "$above"
for folder in "$root"/*; do
  mkdir "$above/${folder##*/}"
  mount --bind "$folder" "$above/${folder##*/}"
  mount -o remount,bind,ro "$above/${folder##*/}"
done
for folder in /proc /dev $shared; do
  mkdir -p "$above$folder"
  mount --rbind "$folder" "$above$folder"
done
mount -o remount,ro "$above"
exec chroot --userspec="$user" --groups= "$above" "$@"
