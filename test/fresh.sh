#!/usr/bin/env bash
# Shows that nothing has to be installed by hand on a new machine. It makes a bare Debian with only
# Go, make and iproute2 added, copies a clean clone there, and runs make targets in it. A machine in
# use hides missing install steps. Needs root and debootstrap.
#
#   test/fresh.sh TARGET...       for example: test/fresh.sh demo test
#
#   SUITE=trixie                  a release other than bookworm
#   TREE=worktree                 include uncommitted changes (tracked or new files, not ignored)
#   MODULES=network               fetch Go modules from the network; by default this machine's module
#                                 cache is their proxy (read-only; go.sum is still checked)
#   CI=true                       passed on: no test may skip
#   TEST_KUBE=0                   passed on: no tests on Kubernetes, which takes longest to build
#
# All mounts and processes are in separate namespaces and disappear with them, however this script
# ends.
set -eu -o pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "test/fresh.sh makes its own root file system: run it as root" >&2; exit 1; }
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
command -v debootstrap >/dev/null ||
  { echo "test/fresh.sh needs debootstrap: apt-get install -y debootstrap" >&2; exit 1; }

suite=${SUITE:-bookworm}
# The mirror that this machine uses, from sources in deb822 or one-line form. If there is none,
# debootstrap uses its default.
mirror=$(awk '$1 == "URIs:" { print $2; exit } $1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^http/) { print $i; exit } }' \
  /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list 2>/dev/null || true)

top=$(mktemp -d /var/tmp/strait-fresh-XXXXXX)
root=$top/root
# This is safe although /sys and /dev are mounted below: they are mounted only in the inner
# namespace.
trap 'rm -rf --one-file-system "$top"' EXIT
trap 'exit 130' INT TERM

echo "== a bare $suite in $root"
debootstrap --variant=minbase --include=make,iproute2 "$suite" "$root" ${mirror:+"$mirror"} >"$top/log" 2>&1 ||
  { tail -n 20 "$top/log"; exit 1; }

echo "== adding only Go, the network settings and a clean clone"
cp -a "$(go env GOROOT)" "$root/usr/local/go"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
# The certificates of this machine's network, for example of a company's proxy, are network settings
# too.
mkdir -p "$root/usr/local/share/ca-certificates"
cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
src=$root/root/strait
if [ "${TREE:-}" = worktree ]; then
  mkdir -p "$src"
  git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -c -T - | tar -x -C "$src"
else
  git clone -q --no-local --no-hardlinks . "$src"
fi

proxy=$(go env GOPROXY)
cache=
if [ "${MODULES:-}" != network ] && [ -d "$(go env GOMODCACHE)/cache/download" ]; then
  cache=$(go env GOMODCACHE)/cache/download
  proxy=file:///modules,$proxy
fi

echo "== make $*"
export root proxy cache targets="$*" ci="${CI:-}" kube="${TEST_KUBE:-}"
# A PID namespace, so that no process that is started inside outlives it. Its first process is the
# shell below. pivot_root and not chroot: containers can only start if / is a mount point, as on a
# real machine.
unshare --mount --propagation private --pid --fork --kill-child bash -eu -c '
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  if [ -n "$cache" ]; then
    mkdir "$root/modules"
    mount --bind "$cache" "$root/modules"
    mount -o remount,ro,bind "$root/modules"
  fi
  cd "$root"
  mkdir host
  pivot_root . host
  cd /
  umount --lazy /host
  rmdir /host
  for target in $targets; do
    start=$SECONDS
    # env -i: start with the environment of a new login, not of this shell.
    if ! env -i HOME=/root TERM=dumb CI="$ci" TEST_KUBE="$kube" GOPROXY="$proxy" \
      PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      make -C /root/strait "$target" </dev/null
    then
      echo "test/fresh.sh: make $target FAILED after $((SECONDS - start)) s" >&2
      exit 1
    fi
    echo "test/fresh.sh: make $target passed in $((SECONDS - start)) s"
  done
'
