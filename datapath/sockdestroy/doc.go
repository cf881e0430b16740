// Package sockdestroy ends sockets that the socket load balancer has connected to a backend which is no
// longer one, so that their clients notice and connect again: connected UDP, and TCP by policy.
//
// Input is the records of load-balanced sockets and the frontends in force; output is sockets that have
// lost their peer: their client is woken and receives ECONNABORTED, or EDESTADDRREQ if it sends on UDP
// first, and may connect() the same socket again. Stale decides; Destroyer acts, in every network
// namespace of the machine, by BPF socket iterator or else by sock_diag. A socket that was not
// load-balanced is never touched: the kernel must find the cookie and the peer of the record on it. It
// must not know where records are kept (package socklb), nor why a backend left, and it starts no
// goroutine that outlives a call.
//
// Known limit, as in ../../bpf/README.md: a socket that came to a backend through a frontend and then
// dials that same backend directly, without being closed between, has the record of before, and is
// destroyed when that backend leaves the frontend.
package sockdestroy

// An object of its own: it needs Linux 6.5, and the load balancer's must load on all.
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-mcpu=v3 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing" -type verdict sockdestroy ../../bpf/sockdestroy.bpf.c -- -I../../bpf/include
