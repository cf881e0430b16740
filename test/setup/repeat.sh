#!/usr/bin/env bash
# Runs tests of one package many times, with the race detector, while the machine has something else to do. It goes on
# after a failure, shows each, and ends with how many runs failed.
#
#   test/setup/repeat.sh PACKAGE REGEXP TIMES [LOAD]
#
# LOAD is how many processes compute for nothing meanwhile; two for each processor unless it is given.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
usage="usage: make repeat PKG=./datapath/socklb RUN=TestStorm [TIMES=20] [LOAD=4]"
[ -n "${1:-}" ] && [ -n "${2:-}" ] || { echo "$usage" >&2; exit 2; }
package=$1 tests=$2 times=$3 load=${4:-$(($(nproc) * 2))}

work=$(mktemp -d)
running=
trap 'rm -rf "$work"' EXIT
trap '[ -z "$running" ] || { kill "$running" && wait "$running"; }; exit 130' INT TERM

race=
command -v "$(go env CC)" >/dev/null && race=-race
go test $race -c -o "$work/tests" "$package"
# Each ends when this shell has ended, however it did.
for _ in $(seq "$load"); do
  (while kill -0 $$ 2>/dev/null; do for ((i = 0; i < 100000; i++)); do :; done; done) &
done

failed=0
for n in $(seq "$times"); do
  start=$SECONDS status=0
  # As go test does: in the package's folder. In the background, so that a signal to this shell ends them at once.
  (cd "$package" && exec "$work/tests" -test.v -test.timeout=15m -test.run="$tests") >"$work/log" 2>&1 &
  running=$!
  wait $running || status=$?
  running=
  passed=$(grep -c '^--- PASS' "$work/log" || true)
  if [ $status != 0 ]; then
    failed=$((failed + 1))
    cat "$work/log"
  elif [ "$passed" = 0 ]; then
    cat "$work/log"
    echo "no test of $package ran and passed: is there one that $tests matches?" >&2
    exit 1
  fi
  echo "run $n of $times: exit code $status, $passed passed, $((SECONDS - start)) s"
done
echo "$failed of $times runs failed, beside $load processes that computed"
[ $failed = 0 ]
