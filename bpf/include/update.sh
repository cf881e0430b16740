#!/bin/sh
# Fetch the vendored libbpf headers again. Needs a Debian system with the release of VERSION in its
# apt sources. linux/bpf.h is cut by hand: compare it with the kernel's when a new field is needed.
set -eu
version=${1:-1:1.1.2-0+deb12u1}
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
apt-get download "libbpf-dev=$version"
dpkg -x libbpf-dev_*.deb .
for h in bpf_helpers.h bpf_helper_defs.h bpf_endian.h; do
	cp "usr/include/bpf/$h" "$here/bpf/$h"
done
echo "bpf/ is libbpf-dev $version: write that into VERSION, then run: make generate"
