#!/usr/bin/env bash
# Builds the page of strait ui, the dashboards of the chart, the CRD and the client of package api, and the eBPF objects and their Go files, which are committed so that
# building strait needs no clang.
#
#   test/setup/generate.sh            build in this tree
#   test/setup/generate.sh --check    build in a copy, and compare byte by byte
#
# clang.txt holds the version of clang that built the committed objects. Another version can produce
# other bytes from the same source, so with another version the comparison would say nothing and is
# skipped.
set -eu
cd "$(dirname "$0")/../.."
record=test/setup/clang.txt
clang=clang-19 # as in the //go:generate lines

version() { "$clang" --version | sed -nE 's/.*clang version ([0-9.]+).*/\1/p'; }
# Not of web, install/dashboards and api, which need no clang: tests compare their files.
sources() { grep -rl --include='*.go' --exclude-dir='.?*' --exclude-dir=web --exclude-dir=dashboards --exclude-dir=v1alpha1 '^//go:generate' . | xargs -r -n 1 dirname | sort -u; }
# This includes tests' objects, which bpf2go names NAME_bpfel_test.
outputs() { find "$@" -regextype posix-extended -regex '.*_bpfe[lb](_test)?\.(go|o)' | sort; }

[ "${1:-}" = --check ] || go generate ./web ./install/dashboards ./api/v1alpha1

if ! command -v "$clang" >/dev/null; then
  if [ "${1:-}" = --check ]; then
    exec test/setup/skip.sh generate-check "no $clang on this machine: run 'make setup' as root"
  fi
  echo "make generate needs $clang: run 'make setup' as root" >&2
  exit 1
fi

folders=$(sources)
[ -n "$folders" ] || { echo "no //go:generate line found" >&2; exit 1; }

if [ "${1:-}" != --check ]; then
  # shellcheck disable=SC2086 # a list of folders
  go generate $folders
  version >"$record"
  exit 0
fi

made=$(cat "$record" 2>/dev/null || true)
[ -n "$made" ] || { echo "$record is missing: run 'make generate' and commit the result" >&2; exit 1; }
if [ "$(version)" != "$made" ]; then
  exec test/setup/skip.sh generate-check "the objects were built with clang $made, but $clang is version $(version)"
fi

# Build in a copy, so that a difference is found and not overwritten.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r go.mod go.sum bpf $(ls -d -- */ | grep -vxE '(bin|bpf)/') "$copy"
# shellcheck disable=SC2046 # a list of files
rm -f $(outputs $(sed "s|^|$copy/|" <<<"$folders"))
(cd "$copy" && go generate $folders)

bad=0
for f in $( (outputs $folders; cd "$copy" && outputs $folders) | sort -u); do
  cmp -s "$f" "$copy/$f" || { echo "$f differs from what bpf/ builds to: run 'make generate' and commit the result" >&2; bad=1; }
done
[ $bad = 0 ] && echo "the committed objects are exactly what clang $made builds from bpf/"
exit $bad
