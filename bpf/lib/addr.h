/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Socket context ↔ one 16-byte address form. The only file that knows address families. */
#ifndef STRAIT_ADDR_H
#define STRAIT_ADDR_H

#include "config.h"
#include "types.h"

#define V4_MAPPED bpf_htonl(0x0000ffff)

/* The verifier requires 4-byte loads of some fields; volatile keeps clang from narrowing them. */
#define CTX(ctx, field) (*(volatile __u32 *)&(ctx)->field)

static __always_inline struct service_key load4(struct bpf_sock_addr *ctx)
{
	struct service_key a = {};
	__u32 *w = (__u32 *)a.addr;

	w[2] = V4_MAPPED;
	w[3] = CTX(ctx, user_ip4);
	a.port = CTX(ctx, user_port);
	a.proto = CTX(ctx, protocol);
	return a;
}

static __always_inline struct service_key load6(struct bpf_sock_addr *ctx)
{
	struct service_key a = {};
	__u32 *w = (__u32 *)a.addr;

	w[0] = CTX(ctx, user_ip6[0]);
	w[1] = CTX(ctx, user_ip6[1]);
	w[2] = CTX(ctx, user_ip6[2]);
	w[3] = CTX(ctx, user_ip6[3]);
	a.port = CTX(ctx, user_port);
	a.proto = CTX(ctx, protocol);
	return a;
}

static __always_inline void store4(struct bpf_sock_addr *ctx, const struct service_key *a)
{
	const __u32 *w = (const __u32 *)a->addr;

	CTX(ctx, user_ip4) = w[3];
	CTX(ctx, user_port) = a->port;
}

static __always_inline void store6(struct bpf_sock_addr *ctx, const struct service_key *a)
{
	const __u32 *w = (const __u32 *)a->addr;

	CTX(ctx, user_ip6[0]) = w[0];
	CTX(ctx, user_ip6[1]) = w[1];
	CTX(ctx, user_ip6[2]) = w[2];
	CTX(ctx, user_ip6[3]) = w[3];
	CTX(ctx, user_port) = a->port;
}

/* Sets a to the loopback address of its family, port 0: nothing ever listens there. */
static __always_inline void make_nowhere(struct service_key *a)
{
	__u32 *w = (__u32 *)a->addr;
	__u32 v4 = !w[0] && !w[1] && w[2] == V4_MAPPED;

	w[0] = w[1] = 0;
	w[2] = v4 ? V4_MAPPED : 0;
	w[3] = v4 ? bpf_htonl(0x7f000001) : bpf_htonl(1);
	a->port = 0;
}

static __always_inline void addr_copy(__u8 *to, const __u8 *from)
{
	const __u32 *f = (const __u32 *)from;
	__u32 *t = (__u32 *)to;

	t[0] = f[0];
	t[1] = f[1];
	t[2] = f[2];
	t[3] = f[3];
}

static __always_inline _Bool same(const __u8 *addr, __be16 port, const struct service_key *b)
{
	const __u32 *x = (const __u32 *)addr, *y = (const __u32 *)b->addr;

	return x[3] == y[3] && port == b->port && x[2] == y[2] && x[1] == y[1] && x[0] == y[0];
}

/* Orders by (address, port), as user space sorts a set. Returns <0, 0 or >0. */
static __always_inline int compare(const __u8 *a, __be16 ap, const __u8 *b, __be16 bp)
{
	const __u32 *x = (const __u32 *)a, *y = (const __u32 *)b;
	__u64 ahi = (__u64)bpf_ntohl(x[0]) << 32 | bpf_ntohl(x[1]);
	__u64 bhi = (__u64)bpf_ntohl(y[0]) << 32 | bpf_ntohl(y[1]);
	__u64 alo = (__u64)bpf_ntohl(x[2]) << 32 | bpf_ntohl(x[3]);
	__u64 blo = (__u64)bpf_ntohl(y[2]) << 32 | bpf_ntohl(y[3]);

	if (ahi != bhi)
		return ahi < bhi ? -1 : 1;
	if (alo != blo)
		return alo < blo ? -1 : 1;
	return (int)bpf_ntohs(ap) - (int)bpf_ntohs(bp);
}

#endif
