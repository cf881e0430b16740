#!/usr/bin/env bash
# Builds a program of test/setup/tools into bin/tools, and prints its path. A folder with a module of its
# own holds a program that cannot be built with the others, or need not be.
#
#   test/setup/tool.sh NAME
set -eu -o pipefail
cd "$(dirname "$0")/../.."
# Static, so that tests can run them where there are no libraries.
export GOFLAGS= GOOS= GOARCH= CGO_ENABLED=0
mkdir -p bin/tools
for module in "test/setup/tools/$1" test/setup/tools test/setup/tools/krew; do
  [ -e "$module/go.mod" ] || continue
  package=$(go list -C "$module" tool | grep "/$1\$" || true)
  [ -n "$package" ] || continue
  go build -C "$module" -buildvcs=false -trimpath -o "$PWD/bin/tools/" "$package" >&2 ||
    { echo "cannot build $1: its source comes from Go's module proxy; see above" >&2; exit 1; }
  echo "$PWD/bin/tools/$1"
  exit
done
echo "cannot build $1: test/setup/tools has no such program" >&2
exit 1
