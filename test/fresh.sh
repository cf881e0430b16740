#!/usr/bin/env bash
# Proves that a new machine needs nothing installed by hand: makes a bare Debian with only Go, make and
# iproute2 beside it, copies a clean clone in, and runs make targets there. A used machine hides missing
# install steps. Run as root where debootstrap is installed.
#
#   test/fresh.sh TARGET...       for example: test/fresh.sh demo test
#
#   SUITE=trixie                  another release than bookworm
#   TREE=worktree                 what is not committed yet as well (tracked or new, not ignored)
#   MODULES=network               fetch Go modules, where else this machine's module cache is their proxy
#                                 (read-only; go.sum still decides what is accepted)
#   CI=true                       inside too: no test may skip
#   TEST_KUBE=0                   inside too: no Kubernetes, whose programs take longest of all to build
#
# All mounts and processes are in namespaces of their own and go with them, however this ends.
set -eu -o pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "test/fresh.sh makes a root of its own and needs root" >&2; exit 1; }
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
command -v debootstrap >/dev/null ||
  { echo "test/fresh.sh needs debootstrap: apt-get install -y debootstrap" >&2; exit 1; }

suite=${SUITE:-bookworm}
# The mirror that this machine uses, in deb822 or one-line form; without one debootstrap knows its own.
mirror=$(awk '$1 == "URIs:" { print $2; exit } $1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^http/) { print $i; exit } }' \
  /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list 2>/dev/null || true)

top=$(mktemp -d /var/tmp/strait-fresh-XXXXXX)
root=$top/root
# Safe although the system's own folders are mounted below: they are so only in the namespace inside.
trap 'rm -rf --one-file-system "$top"' EXIT
trap 'exit 130' INT TERM

echo "== a bare $suite in $root"
debootstrap --variant=minbase --include=make,iproute2 "$suite" "$root" ${mirror:+"$mirror"} >"$top/log" 2>&1 ||
  { tail -n 20 "$top/log"; exit 1; }

echo "== only Go, the network's settings and a clean clone beside it"
cp -a "$(go env GOROOT)" "$root/usr/local/go"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
# Certificates of this machine's network, such as a company's proxy: they come with the network.
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
# A PID namespace, so that nothing that is started inside outlives it; its first process is the shell below.
# pivot_root, not chroot: / has to be a mount, as on a machine, or containers cannot start.
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
    # env -i: the environment of a new login, not of this machine.
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
