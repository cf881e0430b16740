#!/usr/bin/env bash
# Builds a program of test/setup/tools into bin/tools, and prints its path. A program whose folder has a
# module of its own is built alone.
#
#   test/setup/tool.sh NAME
set -eu
cd "$(dirname "$0")/../.."
mkdir -p bin/tools
module=test/setup/tools
[ ! -e "$module/$1/go.mod" ] || module=$module/$1
GOFLAGS= GOOS= GOARCH= go build -C "$module" -buildvcs=false -trimpath -o "$PWD/bin/tools/" tool >&2 ||
  { echo "cannot build $1: its source comes from Go's module proxy; see above" >&2; exit 1; }
echo "$PWD/bin/tools/$1"
