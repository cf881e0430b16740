// Package socklb is the socket load balancer: it holds datapath.Frontends in eBPF maps, which the
// programs of ../../bpf consult once per connect() or sendto().
//
// Input is the wanted frontends and the cgroups that opt out; output is pinned maps, programs and links that
// work on without the process. Reader, OptOuts, AddOptOut and RemoveOptOut use the pins alone, without a
// daemon. The only package that talks to these maps. It must not know services, clusters or why a backend was
// chosen, and it starts no goroutines.
package socklb

// The object is little endian only: no big-endian machine is supported (see bpf/README.md).
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-mcpu=v3 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing" socklb ../../bpf/socklb.bpf.c -- -I../../bpf/include
