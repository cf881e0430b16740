#!/usr/bin/env bash
# Runs tests of one package many times, with the race detector, while other processes keep the
# machine busy. It continues after a failure, prints the log of each failed run, and finally how
# many runs failed.
#
#   test/setup/repeat.sh PACKAGE REGEXP TIMES [LOAD]
#
# LOAD is how many busy processes run meanwhile; the default is two per processor.
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
# Each busy process ends when this shell has ended, for whatever reason.
for _ in $(seq "$load"); do
  (while kill -0 $$ 2>/dev/null; do for ((i = 0; i < 100000; i++)); do :; done; done) &
done

failed=0
for n in $(seq "$times"); do
  start=$SECONDS status=0
  # In the package's folder, as go test does. In the background, so that a signal to this shell ends
  # the tests at once.
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
    echo "no test in $package ran and passed: check that RUN=$tests matches one" >&2
    exit 1
  fi
  echo "run $n of $times: exit code $status, $passed passed, $((SECONDS - start)) s"
done
echo "$failed of $times runs failed, beside $load busy processes"
[ $failed = 0 ]
