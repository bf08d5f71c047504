#!/bin/sh
# A step of the Dockerfile, and of releases: compiles src/ to dist/, and bundles the console, with the tools that the lock file names, in the directory that it is called in.
# No package's own scripts are run.
set -eu
# What is built has the same modes for everyone: a release made again is the same bytes.
umask 022

npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
node scripts/openapi-types.mjs
node node_modules/typescript/bin/tsc -p tsconfig.build.json --declaration false --incremental false --tsBuildInfoFile null
node scripts/build-console.mjs
