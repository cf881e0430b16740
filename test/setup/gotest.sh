#!/usr/bin/env bash
# Runs one set of tests, with the race detector if there is a C compiler, and reports skips. The report
# runs a few failed tests again; see test/README.md.
#
#   test/setup/gotest.sh SET [GO TEST ARGUMENT...]
#
# Every package with tests is in exactly one SET, so that `make test` runs each package once; but for
# test/kube, whose TestOps alone is the set ops, and test/faults, whose TestDiagnose is the set diagnose:
#   arch, script, e2e, web, monitoring, many   the package of that name below test
#   cni                 test/cni
#   ops                 TestOps of test/kube, which has a lab of its own
#   diagnose            TestDiagnose of test/faults, which measures times
#   kube                packages whose tests start real API servers or clusters (test/kubelab), without ops
#   kernel              other packages with a _linux_test.go file: they load eBPF, make namespaces
#   unit                the rest
#
# The SET "compile" is special: it compiles all packages and runs no tests.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
set_=$1
shift

# useRace turns the race detector on if there is a C compiler. In CI there must be one, because the
# race detector is part of the tests.
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
        */test/web) s=web ;;
        */test/monitoring) s=monitoring ;;
        */test/many) s=many ;;
        */test/cni) s=cni ;;
        */test/kube) s='kube ops' ;;
        */test/faults) s='kernel diagnose' ;;
        *)
          s=unit
          compgen -G "$dir/*_linux_test.go" >/dev/null && s=kernel
          case "$imports " in *"/test/kubelab "* | *"/test/kubelab/apiserver "*) s=kube ;; esac
          ;;
      esac
      case " $s " in *" $1 "*) echo "$path" ;; esac
    done
}

# longestFirst moves packages of the list to its front, by how their paths end: those that take longest,
# so that the others run one after the other beside them.
longestFirst() {
  local end first=
  for end; do
    first+=$(grep "$end\$" <<<"$list" || true)$'\n'
  done
  list=$(awk 'NF && !seen[$0]++' <<<"$first$list")
}

if [ "$set_" = compile ]; then
  race=
  useRace
  # shellcheck disable=SC2086 # empty or one word
  exec go build $race ./...
fi
list=$(packages "$set_")
[ -n "$list" ] || { echo "no package with tests in the set $set_" >&2; exit 1; }
# A limit ends what hangs. On a busy machine, a package of unit has taken 10 minutes, and one of kernel 16.
# e2e and many run without the race detector: they start processes, and themselves only wait.
race= parallel= timeout=30m parts=
case $set_ in
  unit) useRace ;;
  # The clients of a pair of CNIs call side by side. All pairs take 50 minutes.
  cni) useRace; parallel='-parallel 8'; timeout=90m ;;
  # Two packages at a time, and up to six parallel tests in a package, because they wait more than they
  # work. They share the machine's kernel, but each test has its own cgroup, namespaces and bpffs.
  kernel | script)
    useRace
    parallel='-p 2 -parallel 6 -skip ^TestDiagnose$'
    timeout=45m
    longestFirst /test/faults /test/redteam /datapath/socklb /test/locality /clustermesh/gossip
    ;;
  diagnose) parallel='-run ^TestDiagnose$' ;;
  ops) useRace; parallel='-run ^TestOps$ -parallel 8'; timeout=50m parts=-parts ;;
  # Two packages at a time here too, each with its own lab, and up to eight parallel tests in a
  # package.
  kube)
    useRace
    parallel='-p 2 -parallel 8 -skip ^TestOps$'
    timeout=50m
    longestFirst /test/kube
    ;;
esac
# -count=1: the tests also depend on this machine's kernel, which go's cache of results does not
# consider. -vet=off: make vet and make lint run all of vet's checks, not only the few of go test.
# shellcheck disable=SC2086 # each of these is a list of words
go run ./test/report $parts go test -json -vet=off -count=1 -timeout $timeout $race $parallel "$@" -- $list
