// Package sockdestroy destroys sockets that the socket load balancer connected to a backend which
// their frontend no longer has, so that their clients notice and connect again. It destroys
// connected UDP sockets, and TCP sockets by policy.
//
// Its input is the records of load-balanced sockets and the frontends in force. Its output is
// sockets without a peer: their client is woken and receives ECONNABORTED, or EDESTADDRREQ if it
// sends on UDP first, and can connect() the same socket again. Grace decides how long sockets stay
// with a pod that is not ready, and Stale which sockets to destroy. Destroyer destroys them, in
// every network namespace of the machine, by a BPF socket iterator or, if the kernel has none, by
// sock_diag.
//
// Because it can look into every network namespace, it also tells which sockets are alive (Alive)
// and what they are (Look).
//
// A socket that was not load-balanced is never touched: the kernel must find the cookie and the
// peer of the record on it. The package must not know where records are kept (package socklb) or
// why a backend left, and it starts no goroutine that outlives a call.
//
// Known limit, also described in ../../bpf/README.md: suppose that a socket reaches a backend
// through a frontend, and then, without being closed, dials the same backend directly. It still has
// the old record, so it is destroyed when that backend leaves the frontend.
package sockdestroy

// This is an object of its own because it needs Linux 6.5, while the object of the load balancer
// must load on all kernels.
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-mcpu=v3 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing" -type verdict sockdestroy ../../bpf/sockdestroy.bpf.c -- -I../../bpf/include
