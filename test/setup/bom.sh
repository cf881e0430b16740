#!/usr/bin/env bash
# Writes bills of materials (CycloneDX) of programs, from what Go wrote into them.
#
#   test/setup/bom.sh VERSION PROGRAM FILE [PROGRAM FILE]...
set -eu -o pipefail
cd "$(dirname "$0")/../.."
version=$1
shift
tool=$(test/setup/tool.sh cyclonedx-gomod)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while [ $# -gt 0 ]; do
  # No serial number and no time: the same programs have the same list. The licenses come from the
  # modules' sources, which the build has fetched.
  GOPROXY=off "$tool" bin -json -noserial -notimestamp -std -licenses -version "$version" -output "$2" "$1" 2>"$log" ||
    { cat "$log" >&2; exit 1; }
  shift 2
done
