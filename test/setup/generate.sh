#!/usr/bin/env bash
# Builds the eBPF objects and their Go, which are committed so that building strait needs no clang.
#
#   test/setup/generate.sh            into this tree
#   test/setup/generate.sh --check    into a copy, and compares: exactly, byte by byte
#
# clang.txt holds the version of clang that the committed objects were made with. Another version may
# write other bytes for the same source, so that the comparison would say nothing: it is skipped.
set -eu
cd "$(dirname "$0")/../.."
record=test/setup/clang.txt
clang=clang-19 # as the //go:generate lines say

version() { "$clang" --version | sed -nE 's/.*clang version ([0-9.]+).*/\1/p'; }
sources() { grep -rl --include='*.go' --exclude-dir='.?*' '^//go:generate' . | xargs -r -n 1 dirname | sort -u; }
# A test's objects too: bpf2go names them NAME_bpfel_test.
outputs() { find "$@" -regextype posix-extended -regex '.*_bpfe[lb](_test)?\.(go|o)' | sort; }

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
[ -n "$made" ] || { echo "$record is missing: run 'make generate' and commit what it writes" >&2; exit 1; }
if [ "$(version)" != "$made" ]; then
  exec test/setup/skip.sh generate-check "the objects were made by clang $made, and $clang is $(version)"
fi

# A copy, so that a difference shows and is not repaired.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r go.mod go.sum bpf $(ls -d -- */ | grep -vxE '(bin|bpf)/') "$copy"
# shellcheck disable=SC2046 # a list of files
rm -f $(outputs $(sed "s|^|$copy/|" <<<"$folders"))
(cd "$copy" && go generate $folders)

bad=0
for f in $( (outputs $folders; cd "$copy" && outputs $folders) | sort -u); do
  cmp -s "$f" "$copy/$f" || { echo "$f is not what bpf/ makes: run 'make generate' and commit it" >&2; bad=1; }
done
[ $bad = 0 ] && echo "the committed objects are what clang $made makes of bpf/"
exit $bad
