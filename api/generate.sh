#!/usr/bin/env bash
# Generates from the types in api/v1alpha1 their deep copies, their CRD and their client, which are committed.
#
# The generators are those that api/generate/go.mod names. They have a module of their own, so that strait requires nothing for them.
set -eu
cd "$(dirname "$0")/.."
bin=$PWD/bin/generators
mkdir -p "$bin"
GOFLAGS= GOOS= GOARCH= go build -C api/generate -buildvcs=false -trimpath -o "$bin/" tool >&2

module=strait.io/strait
types=api/v1alpha1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/controller-gen" object paths="./$types"
"$bin/controller-gen" crd paths="./$types" output:crd:dir="$work"
mv "$work"/strait.io_servicepolicies.yaml "$types/zz_generated.crd.yaml"

rm -rf api/client
"$bin/client-gen" --go-header-file /dev/null --input-base "$module" --input "$types" \
  --output-dir "$work" --output-pkg "$module/api" --clientset-name client
mv "$work/client" api/client
