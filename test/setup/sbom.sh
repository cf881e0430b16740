#!/usr/bin/env bash
# Writes bills of materials (CycloneDX): one for each program of an image that was built, and one for
# the image.
#
#   test/setup/sbom.sh VERSION ARCH...
set -eu -o pipefail
cd "$(dirname "$0")/../.."
version=$1
shift
for arch; do
  boms=("bin/straitd-$arch.cdx.json" "bin/strait-$arch.cdx.json")
  test/setup/bom.sh "$version" "bin/image/$arch/straitd" "${boms[0]}" "bin/image/$arch/strait" "${boms[1]}"
  go run -buildvcs=false ./install/image/sbom -image "bin/strait-image-$arch.tar" -o "bin/strait-image-$arch.cdx.json" "${boms[@]}"
  printf '%s\n' "${boms[@]}" "bin/strait-image-$arch.cdx.json"
done
