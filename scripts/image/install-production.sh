#!/bin/sh
# A step of the Dockerfile: installs below production/ what the program needs where it runs, from the lock file, for the processor that
# the image is for. No package's own scripts are run.
# Usage: install-production.sh amd64|arm64
set -eu

case ${1:-} in
  amd64) cpu=x64 ;;
  arm64) cpu=arm64 ;;
  *)
    echo "error: cpu_unknown: an image is for amd64 or arm64, not \"${1:-}\"" >&2
    exit 2
    ;;
esac

mkdir production
cp package.json package-lock.json .npmrc production/
cd production
npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error --os=linux --cpu="$cpu"
