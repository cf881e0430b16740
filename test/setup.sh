#!/usr/bin/env bash
# Installs what the tests need and is missing, as root on Debian or Ubuntu; else says what is missing and
# what to run, and goes on: the tests that need it skip with a reason. May be run any number of times.
#
#   test/setup.sh              all that `make test` needs but for make test-kube, which asks itself
#   test/setup.sh PACKAGE...   only these
set -eu

# package      a file that shows it is there   why
wanted() {
  cat <<'LIST'
ca-certificates /etc/ssl/certs/ca-certificates.crt  go fetches modules over HTTPS
gcc             gcc                                 go test -race links by the C compiler
libc6-dev       /usr/include/stdlib.h               go test -race compiles against libc
clang-19        clang-19                            make generate compiles bpf/
llvm-19         llvm-strip-19                       make generate strips the objects
clang-format-19 clang-format-19                     make lint looks at bpf/
bpftool         bpftool                             tests read pinned maps as a person would
qemu-system-x86 qemu-system-x86_64                  make test-vm boots old and new kernels
xz-utils        xz                                  make test-vm unpacks their modules
nftables        nft                                 test/bench compares with kube-proxy's rules
iptables        iptables                            tests keep pods' addresses from what it masquerades
curl            curl                                test/clients: the most used TCP client, from outside of Go
bind9-dnsutils  dig                                 test/clients: a DNS client over UDP and TCP
iperf3          iperf3                              test/clients: streams and datagrams at speed
musl-tools      musl-gcc                            test/clients: the resolver of Alpine's images
runc            runc                                make kube-lab starts pods; it needs cgo, so it is not built
containernetworking-plugins /usr/lib/cni/bridge     make kube-lab gives pods addresses
conntrack       conntrack                           make kube-lab: kube-proxy forgets old UDP flows by it
busybox-static  /bin/busybox                        make kube-lab: the shell of the test image
netcat-openbsd  nc.openbsd                          make kube-lab: the test image's nc, with -4 and -6
socat           socat                               make kube-lab: the test image's servers of one line
LIST
}

# there FILE-OR-COMMAND
there() {
  case $1 in
    /*) [ -e "$1" ] ;;
    *) PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null ;;
  esac
}

missing() {
  wanted | while read -r package file why; do
    if [ $# -gt 0 ]; then
      case " $* " in *" $package "*) ;; *) continue ;; esac
    else
      # make test-vm, make kube-lab and make test-kube ask for these by name.
      case $why in "make test-vm "* | "make kube-lab"*) continue ;; esac
    fi
    there "$file" || echo "$package $why"
  done
}

lack=$(missing "$@")
[ -n "$lack" ] || exit 0
names=$(cut -d ' ' -f 1 <<<"$lack" | tr '\n' ' ')

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "Missing; tests that need it will say so and skip:"
  while read -r package why; do printf '  %-16s %s\n' "$package" "$why"; done <<<"$lack"
  if command -v apt-get >/dev/null; then
    echo "To install: sudo apt-get install -y --no-install-recommends $names"
  else
    echo "strait's tests install packages on Debian and Ubuntu only: install the like of these here."
  fi
  exit 0
fi

echo "installing: $names"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# One at a time: a release that lacks one of them (clang-19 before Debian 12 and Ubuntu 24.04) still gets
# the others.
for package in $names; do
  if ! log=$(apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$package" 2>&1); then
    . /etc/os-release
    echo "$PRETTY_NAME does not offer $package; tests that need it will say so and skip. apt-get said:"
    tail -n 3 <<<"$log" | sed 's/^/  /'
  fi
done
