#!/usr/bin/env bash
# Runs every fuzz target of the module: each for some time, or for a number of inputs.
#
#   test/setup/fuzz.sh TIME     a Go duration: 30s. Looks for inputs that reach new code
#   test/setup/fuzz.sh COUNTx   a number of random inputs: 200x. Shows only that each target works: its
#                               seeds also pass in the fuzzing engine, and it is given that many inputs
#
# The engine takes one target at a time, so this builds one test binary per package and runs its targets
# with that. For a number of inputs it is not instrumented: for an instrumented one all that it imports is
# built once more, which takes minutes.
set -eu -o pipefail
cd "$(dirname "$0")/../.."

targets=$(grep -rnoE --include='*_test.go' --exclude-dir='.?*' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's/^(.*)\/[^/]+:[0-9]+:func (.*)$/\1 \2/' | sort) || true
[ -n "$targets" ] || { echo "no fuzz target found" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An engine that is given a time keeps what it finds interesting where go test does.
case $1 in
  *x) least=${1%x} build=() limit=(timeout --kill-after=5 300) kept=$work/kept ;;
  *) least=1 build=(-fuzz=.) limit=() kept=$(go env GOCACHE)/fuzz ;;
esac

# fuzz runs one target of a package whose test binary is built. The target fails if it was given too few
# inputs, too: it skips, or its seeds fail in the engine.
fuzz() {
  local dir=$1 target=$2 status=0 tried
  (cd "$dir" && "${limit[@]}" "$work/test" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="$3" \
    -test.fuzzcachedir="$kept/$(go list .)") >"$work/log" 2>&1 || status=$?
  tried=$(sed -nE 's/^fuzz: .*execs: ([0-9]+).*/\1/p' "$work/log" | tail -n 1)
  if [ $status = 0 ] && [ "${tried:-0}" -ge "$least" ]; then
    echo "ok    $dir $target: $tried inputs"
    return
  fi
  cat "$work/log"
  echo "FAILED $dir $target, after ${tried:-0} inputs; to repeat it: go test -run '^\$' -fuzz '^$target\$' -fuzztime $3 $dir"
  return 1
}

failed=0 built=
while read -r dir target; do
  [ "$dir" = "$built" ] || go test -c "${build[@]}" -o "$work/test" "$dir"
  built=$dir
  fuzz "$dir" "$target" "$1" || failed=1
done <<<"$targets"
exit $failed
