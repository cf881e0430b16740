#!/usr/bin/env bash
# Records that something was not tested, and why. In CI it fails, unless test/skips.txt allows the
# skip.
#
#   test/setup/skip.sh WHAT REASON
set -eu
cd "$(dirname "$0")/../.."
echo "SKIP $1: $2"
if [ "${CI:-}" = true ] && ! grep -q "^$1 " test/skips.txt; then
  echo "in CI a step is skipped only if test/skips.txt allows it, and '$1' is not listed there" >&2
  exit 1
fi
