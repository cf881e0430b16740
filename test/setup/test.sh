#!/usr/bin/env bash
# Runs every step of `make test` in order, stops at the first that fails, and ends with what ran, what did
# not, and why.
set -eu -o pipefail
cd "$(dirname "$0")/../.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
summary=()

finish() {
  printf '\n== make test\n'
  printf '%s\n' "${summary[@]}"
  grep -h '^SKIP ' "$log" || true
}

[ "$(id -u)" = 0 ] || echo "not root: the tests of the kernel and the demo will say that they need it, and skip"

steps="setup build lint arch unit kernel script generate-check e2e"
if [ "${TEST_KUBE:-1}" != 0 ]; then
  steps+=" kube-programs test-kube"
  echo "TEST_KUBE=0 leaves the tests on real Kubernetes out; the first time they take a quarter of an hour more, to build it"
elif ! test/setup/skip.sh test-kube "TEST_KUBE=0 leaves the tests on real Kubernetes out: make test-kube runs them" | tee "$log"; then
  exit 1
fi

for step in $steps; do
  printf '\n== %s\n' "$step"
  start=$SECONDS
  if ! make --no-print-directory "$step" 2>&1 </dev/null | tee -a "$log"; then
    summary+=("$(printf '  %-15s FAILED after %d s' "$step" $((SECONDS - start)))")
    finish
    echo "make test: FAILED in $step; run it alone with: make $step"
    exit 1
  fi
  summary+=("$(printf '  %-15s ok     %4d s' "$step" $((SECONDS - start)))")
done

finish
# The totals of all steps, in the form that each step prints.
awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
  END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$log"
