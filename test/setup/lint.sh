#!/usr/bin/env bash
# Finds problems that the compiler does not report. It changes nothing; each finding says how to fix
# it.
set -eu
cd "$(dirname "$0")/../.."

go tool staticcheck ./...

files() { find . \( -name .git -o -name .demo -o -name '.lab*' -o -name testdata -o -path ./bpf/include \) -prune -o -name "$1" -print; }

unformatted=$(files '*.go' | xargs -r gofmt -l)
if [ -n "$unformatted" ]; then
  echo "not formatted; run: gofmt -w" $unformatted >&2
  exit 1
fi

c=$(find bpf test \( -name include -o -name testdata \) -prune -o \( -name '*.c' -o -name '*.h' \) -print)
if [ -z "$c" ]; then
  :
elif ! command -v clang-format-19 >/dev/null; then
  # Another version breaks lines differently.
  test/setup/skip.sh clang-format "no clang-format-19: run 'make setup' as root"
else
  # shellcheck disable=SC2086 # a list of files
  clang-format-19 --dry-run --Werror $c || { echo "not formatted; run: clang-format-19 -i" $c >&2; exit 1; }
fi

# Find syntax errors in scripts here, and not when a user runs them.
for script in $(find test api .ci -name '*.sh' -o -path .ci/run); do bash -n "$script"; done

for target in $(awk '$1 == ".PHONY:" { for (i = 2; i <= NF; i++) print $i }' Makefile); do
  grep -q "^$target:.*## " Makefile || { echo "Makefile: $target has no ## comment, so make help does not list it" >&2; exit 1; }
done
