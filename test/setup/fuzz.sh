#!/usr/bin/env bash
# Runs each fuzz target of the module for some time. `go test` accepts only one target at a time.
#
#   test/setup/fuzz.sh TIME     a Go duration: 30s
set -eu
cd "$(dirname "$0")/../.."

targets=$(grep -rnoE --include='*_test.go' --exclude-dir='.?*' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's/^(.*)\/[^/]+:[0-9]+:func (.*)$/\1 \2/' | sort)
[ -n "$targets" ] || { echo "no fuzz target found" >&2; exit 1; }
while read -r dir target; do
  echo "== $dir $target"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$dir"
done <<<"$targets"
