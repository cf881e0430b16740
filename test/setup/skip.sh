#!/usr/bin/env bash
# Records that something was not tested, and why; in CI that fails, unless test/skips.txt allows it.
#
#   test/setup/skip.sh WHAT REASON
set -eu
cd "$(dirname "$0")/../.."
echo "SKIP $1: $2"
if [ "${CI:-}" = true ] && ! grep -q "^$1 " test/skips.txt; then
  echo "in CI nothing is skipped but what test/skips.txt allows, and '$1' is not in it" >&2
  exit 1
fi
