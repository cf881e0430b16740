#!/usr/bin/env bash
# Says whether there can be a release, or writes dist/ from programs that make release-programs has built.
# make sets the variables.
#
#   install/release/build.sh check
#   install/release/build.sh assemble
set -eu -o pipefail
cd "$(dirname "$0")/../.."
built=bin/release

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(install/release/source.sh time)}
# A tarball of unknown origin: the first time that zip can say.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
# As the programs are built, so that most of what they are compiled of is compiled once.
export CGO_ENABLED=0 GOFLAGS='-buildvcs=false -trimpath'

dist() {
  go run ./install/release/dist -version "$VERSION" -revision "$REVISION" -registry "$REGISTRY" -url "$RELEASE_URL" \
    -platforms "$RELEASE_PLATFORMS" -key "$RELEASE_KEY" "$@"
}

if [ "$1" = check ]; then
  dist -check
  exit
fi

go run -tags books ./cmd/strait $built/books "$VERSION"

mkdir -p $built/bom
programs=()
for platform in $RELEASE_PLATFORMS; do
  for file in $built/"${platform/\//-}"/*; do
    name=${file##*/}
    programs+=("$file" "$built/bom/${platform/\//-}-${name%.exe}.cdx.json")
  done
done
test/setup/bom.sh "$VERSION" "${programs[@]}"

install/release/source.sh subjects "$VERSION" >$built/subjects
dist -built $built -subjects $built/subjects -since "$(install/release/source.sh previous "$VERSION")"
