#!/usr/bin/env bash
# Says in one line what to do where Go is missing or older than go.mod asks for, and makes sure that Go
# can fetch modules: it needs the certificates that Debian keeps in a package of their own.
set -eu
cd "$(dirname "$0")/../.."
want=$(awk '$1 == "go" { print $2 }' go.mod)
get="install Go $want or newer from https://go.dev/dl/"

command -v go >/dev/null || { echo "strait needs Go, and there is no go in PATH: $get" >&2; exit 1; }

# Asked inside the module: a go command that is too old but may fetch a newer one (GOTOOLCHAIN=auto)
# answers as the newer one; one that may not fails.
if ! have=$(go env GOVERSION 2>/dev/null) ||
  [ "$(printf '%s\n' "$want" "${have#go}" | sort -V | head -n 1)" != "$want" ]; then
  have=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || echo unknown)
  echo "strait needs Go $want or newer, and $(command -v go) is ${have#go}: $get" >&2
  exit 1
fi

certs=/etc/ssl/certs/ca-certificates.crt
if [ ! -e "$certs" ] && [ -z "${SSL_CERT_FILE:-}" ] && [ -e /etc/debian_version ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "no certificates in $certs, so Go cannot fetch modules: sudo apt-get install -y ca-certificates" >&2
    exit 1
  fi
  test/setup.sh ca-certificates
fi
