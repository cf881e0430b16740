#!/usr/bin/env bash
# Writes bills of materials (CycloneDX): one for each program of an image that was built, from what
# Go wrote into the program, and one for the image.
#
#   test/setup/sbom.sh VERSION ARCH...
set -eu -o pipefail
cd "$(dirname "$0")/../.."
version=$1
shift
tool=$(test/setup/tool.sh cyclonedx-gomod)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

for arch; do
  boms=()
  for program in straitd strait; do
    bom=bin/$program-$arch.cdx.json
    # No serial number and no time: the same programs have the same list. The licenses come from the
    # modules' sources, which the build has fetched.
    GOPROXY=off "$tool" bin -json -noserial -notimestamp -std -licenses -version "$version" -output "$bom" \
      "bin/image/$arch/$program" 2>"$log" || { cat "$log" >&2; exit 1; }
    boms+=("$bom")
  done
  go run -buildvcs=false ./install/image/sbom -image "bin/strait-image-$arch.tar" -o "bin/strait-image-$arch.cdx.json" "${boms[@]}"
  printf '%s\n' "${boms[@]}" "bin/strait-image-$arch.cdx.json"
done
