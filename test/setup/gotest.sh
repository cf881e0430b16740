#!/usr/bin/env bash
# Runs one set of tests with the race detector where there is a C compiler, and reports skips.
#
#   test/setup/gotest.sh SET [GO TEST ARGUMENT...]
#
# Every package with tests is in exactly one SET, so that `make test` runs each once:
#   arch, script, e2e   test/arch, test/script, test/e2e
#   kube                packages whose tests start real API servers or clusters (test/kubelab)
#   kernel              other packages with a _linux_test.go file: they load eBPF, make namespaces
#   unit                the rest
#
# The SET compile is none: it compiles what the packages share, and runs nothing.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
set_=$1
shift

# useRace turns the race detector on where it can be. In CI it must be: it is part of what is tested.
useRace() {
  if command -v "$(go env CC)" >/dev/null; then
    race=-race
  else
    test/setup/skip.sh race "no C compiler ($(go env CC)) to link the race detector: run 'make setup' as root"
  fi
}

# packages prints the packages of a set, one per line.
packages() {
  go list -e -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}' ./... |
    while read -r path dir imports; do
      case "$path" in
        */test/arch) s=arch ;;
        */test/script*) s=script ;;
        */test/e2e) s=e2e ;;
        *)
          s=unit
          compgen -G "$dir/*_linux_test.go" >/dev/null && s=kernel
          case "$imports " in *"/test/kubelab "* | *"/test/kubelab/apiserver "*) s=kube ;; esac
          ;;
      esac
      [ "$s" = "$1" ] && echo "$path" || true
    done
}

if [ "$set_" = compile ]; then
  race=
  useRace
  # shellcheck disable=SC2086 # empty or one word
  exec go build $race ./...
fi
list=$(packages "$set_")
[ -n "$list" ] || { echo "no package with tests in the set $set_" >&2; exit 1; }
race= parallel= timeout=10m
case $set_ in
  unit) useRace ;;
  # Two packages at a time: they wait more than they work. They share the machine's one kernel, but each test has a
  # cgroup, namespaces and a bpffs of its own.
  kernel | script) useRace; parallel='-p 2' ;;
  # Two at a time here too, with a lab each, and the one that takes longest first: beside it the others have their
  # turn. Of one package's tests eight side by side.
  kube)
    useRace
    parallel='-p 2 -parallel 8'
    timeout=30m
    list=$(grep '/test/kube$' <<<"$list"; grep -v '/test/kube$' <<<"$list")
    ;;
  # The demo's processes are what is tested; the test itself only waits for them.
  e2e) timeout=20m ;;
esac
# -count=1: what is tested is also this kernel, of which go's cache of results knows nothing.
# shellcheck disable=SC2086 # each of these is a list of words
go test -json -count=1 -timeout $timeout $race $parallel "$@" $list | go run ./test/report
