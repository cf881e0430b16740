#!/usr/bin/env bash
# Checks that Go is installed and not older than go.mod requires, and says in one line what to do if
# not. Also makes sure that Go can fetch modules, for which it needs certificates that Debian has in
# a separate package.
set -eu
cd "$(dirname "$0")/../.."
want=$(awk '$1 == "go" { print $2 }' go.mod)
get="install Go $want or newer from https://go.dev/dl/"

command -v go >/dev/null || { echo "strait needs Go, but go is not in PATH: $get" >&2; exit 1; }

# Run inside the module: a go command that is too old but is allowed to fetch a newer one
# (GOTOOLCHAIN=auto) answers as the newer one. If it is not allowed to, it fails.
if ! have=$(go env GOVERSION 2>/dev/null) ||
  [ "$(printf '%s\n' "$want" "${have#go}" | sort -V | head -n 1)" != "$want" ]; then
  have=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || echo unknown)
  echo "strait needs Go $want or newer, but $(command -v go) is ${have#go}: $get" >&2
  exit 1
fi

certs=/etc/ssl/certs/ca-certificates.crt
if [ ! -e "$certs" ] && [ -z "${SSL_CERT_FILE:-}" ] && [ -e /etc/debian_version ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "Go cannot fetch modules without certificates in $certs: sudo apt-get install -y ca-certificates" >&2
    exit 1
  fi
  test/setup.sh ca-certificates
fi
