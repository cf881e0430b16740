#!/usr/bin/env bash
# Installs the missing packages that the tests need, as root on Debian or Ubuntu. Otherwise it says
# what is missing and what to run, and succeeds: the tests that need a missing package skip with a
# reason. It can be run any number of times.
#
#   test/setup.sh              everything for `make test`, except make test-kube, which calls this
#   test/setup.sh PACKAGE...   only these
set -eu

# package      a file that it installs         why
wanted() {
  cat <<'LIST'
ca-certificates /etc/ssl/certs/ca-certificates.crt  go fetches modules over HTTPS
gcc             gcc                                 go test -race links with the C compiler
libc6-dev       /usr/include/stdlib.h               go test -race compiles against libc
clang-19        clang-19                            make generate compiles bpf/; make bench compiles Cilium's programs
llvm-19         llvm-strip-19                       make generate strips the objects
clang-format-19 clang-format-19                     make lint checks bpf/
bpftool         bpftool                             tests read pinned maps as a person would
qemu-system-x86 qemu-system-x86_64                  make test-vm boots old and new kernels
xz-utils        xz                                  make test-vm unpacks their modules
nftables        nft                                 test/bench compares with kube-proxy's rules; tests list strait's, and drop ICMP
wireguard-tools wg                                  test/e2e: a machine that has WireGuard and not strait; test/faults changes keys
iproute2        ip                                  test/e2e: its network
iptables        iptables                            tests check that pods' addresses are not masqueraded by its rules
curl            curl                                test/clients: the most widely used TCP client, not written in Go
bind9-dnsutils  dig                                 test/clients: a DNS client over UDP and TCP
iperf3          iperf3                              test/clients: streams and datagrams at full speed
musl-tools      musl-gcc                            test/clients: the resolver of Alpine's images
redis-server    redis-server                        test/clients: a server behind a frontend
redis-tools     redis-cli                           test/clients: a client of many requests
postgresql      pg_createcluster                    test/clients: a server behind a frontend
postgresql-client psql                              test/clients: psql and pgbench, which connects for each transaction
nginx           nginx                               test/clients: a proxy in a pod
haproxy         haproxy                             test/clients: a proxy in a pod that checks its server
unbound         unbound                             test/clients: a DNS forwarder in a pod
dnsmasq-base    dnsmasq                             test/clients: a DNS forwarder in a pod
rsync           rsync                               test/clients: a server and a client
chrony          chronyd                             test/clients: an NTP server and client
bsdutils        logger                              test/clients: a client of syslog
openssl         openssl                             test/clients: HTTP/3 needs a certificate
ngtcp2-client   gtlsclient                          test/clients: HTTP/3 over QUIC
ngtcp2-server   gtlsserver                          test/clients: HTTP/3 over QUIC
python3-grpcio  /usr/lib/python3/dist-packages/grpc test/clients: gRPC
python3-websockets /usr/lib/python3/dist-packages/websockets test/clients: WebSocket
python3-pyftpdlib /usr/lib/python3/dist-packages/pyftpdlib test/clients: an FTP server
chromium        chromium                            make web looks at the page of strait ui
minisign        minisign                            test/supply checks the signature of a release, as docs/release.md says
prometheus      promtool                            install/chart, test/monitoring: alerts and queries are asked of a real Prometheus
runc            runc                                make kube-lab starts pods with it; it needs cgo, so it is not built
containernetworking-plugins /usr/lib/cni/bridge     make kube-lab gives pods their addresses with it
conntrack       conntrack                           make kube-lab: kube-proxy removes old UDP flows with it
busybox-static  /bin/busybox                        make kube-lab: the shell of the test image
ipset           ipset                               make test-cni: kube-router needs it
netcat-openbsd  nc.openbsd                          make kube-lab: the test image's nc, with -4 and -6
socat           socat                               make kube-lab: the test image's one-line servers
LIST
}

# Only unpacked, not installed: it would replace the machine's own time daemon. test/clients looks here.
unpack=chrony
unpacked=${XDG_CACHE_HOME:-$HOME/.cache}/strait/unpacked

# there FILE-OR-COMMAND
there() {
  case $1 in
    /*) [ -e "$1" ] ;;
    *) PATH="$PATH:/usr/sbin:/sbin:$unpacked/usr/sbin" command -v "$1" >/dev/null ;;
  esac
}

missing() {
  wanted | while read -r package file why; do
    if [ $# -gt 0 ]; then
      case " $* " in *" $package "*) ;; *) continue ;; esac
    else
      # make test-vm, make kube-lab, make test-kube and make web ask for these by name.
      case $why in "make test-vm "* | "make kube-lab"* | "make web "*) continue ;; esac
    fi
    there "$file" || echo "$package $why"
  done
}

lack=$(missing "$@")
[ -n "$lack" ] || exit 0
names=$(cut -d ' ' -f 1 <<<"$lack" | tr '\n' ' ')

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing packages; tests that need them will skip with a reason:"
  while read -r package why; do printf '  %-16s %s\n' "$package" "$why"; done <<<"$lack"
  if command -v apt-get >/dev/null; then
    echo "to install them: sudo apt-get install -y --no-install-recommends $names"
  else
    echo "test/setup.sh installs packages only on Debian and Ubuntu: install the equivalents for this system"
  fi
  exit 0
fi

echo "installing: $names"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq

# The tests start servers themselves. Debian would also start them as services of this machine, now
# and at each boot.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
if [ ! -e /etc/postgresql-common ]; then
  mkdir /etc/postgresql-common
  echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
fi

# install PACKAGE...: never at the price of a package that is there.
install() {
  log=$(apt-get install -y -qq --no-install-recommends --no-remove -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "$@" 2>&1)
}

# unpack PACKAGE
unpack() (
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  cd "$dir"
  apt-get download -qq "$1" && mkdir -p "$unpacked" && dpkg -x "$1"_*.deb "$unpacked"
)

# cannot PACKAGE
cannot() {
  . /etc/os-release
  echo "cannot install $1 on $PRETTY_NAME; tests that need it will skip with a reason; apt-get printed:"
  tail -n 3 <<<"$log" | sed 's/^/  /'
}

whole=
for package in $names; do
  if [ "$package" != "$unpack" ]; then
    whole="$whole $package"
  elif ! log=$(unpack "$package" 2>&1); then
    cannot "$package"
  fi
done
# shellcheck disable=SC2086 # a list of words
if [ -n "$whole" ] && ! install $whole; then
  # One at a time, so that a release that lacks one of them (clang-19 before Debian 12 and Ubuntu
  # 24.04) still gets the others.
  for package in $whole; do install "$package" || cannot "$package"; done
fi
if [ -d /run/systemd/system ]; then
  for package in $whole; do
    # Not of a package that was there before: it is not in the list.
    systemctl disable --quiet "$package.service" 2>/dev/null || true # most have no service
  done
fi
