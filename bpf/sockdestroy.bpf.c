// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Destroys given sockets in one network namespace: that of the thread that opens the iterator.
 * A separate object, because it needs Linux 6.5 (bpf_sock_destroy). datapath/sockdestroy loads it
 * when there is something to destroy, and falls back to sock_diag if it does not load.
 */
#include "lib/types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define AF_INET 2
#define MAX_TARGETS 16384

/* States of include/net/tcp_states.h. A connected UDP socket is "established". */
#define ESTABLISHED (1 << 1)
/* Full TCP sockets that have a peer: without TIME_WAIT, CLOSE, LISTEN and NEW_SYN_RECV. */
#define TCP_WITH_PEER (1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11)

#define PROTO_TCP 6
#define PROTO_UDP 17

/* What happened to a target. */
enum verdict {
	VERDICT_UNSEEN = 0,
	VERDICT_DESTROYED = 1,
	VERDICT_ELSEWHERE = 2, /* the socket has another peer now */
	VERDICT_LOOSE = 3,     /* the socket has no peer, or none yet */
	VERDICT_REFUSED = 4,   /* the kernel refused; error says why */
};

/* The peer that a socket must be connected to; otherwise it is not destroyed. */
struct target {
	__u8 addr[ADDR_BYTES] ALIGNED(8);
	__be16 port;
	__u8 proto;
	__u8 pad;
	enum verdict verdict;
	__s32 error; /* negative errno, if refused */
	__u32 pad2;
};

/* The few kernel fields that the programs read; the loader finds their offsets (CO-RE). */
#define KERNEL __attribute__((preserve_access_index))

struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
} KERNEL;

struct sock_common {
	__be32 skc_daddr;
	__be16 skc_dport;
	__u16 skc_family;
	__u8 skc_state;
	struct in6_addr skc_v6_daddr;
	struct {
		__s64 counter;
	} skc_cookie;
} KERNEL;

struct bpf_iter_meta;

struct bpf_iter__udp {
	struct bpf_iter_meta *meta;
	struct sock_common *udp_sk; /* struct udp_sock, which starts with this */
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

extern int bpf_sock_destroy(struct sock_common *sk) __ksym;

/*
 * Socket cookie → the peer that it must have. User space fills the map before a walk through the
 * namespaces and empties it afterwards; the iterators read it and write the verdicts.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_TARGETS);
	__type(key, __u64);
	__type(value, struct target);
} targets SEC(".maps");

/* Targets with a verdict. User space zeroes it for each walk, and stops once all have one. */
__u32 decided = 0;

static __always_inline _Bool is_peer(const struct sock_common *sk, const struct target *t)
{
	const __u32 *w = (const __u32 *)t->addr;

	if (sk->skc_dport != t->port)
		return 0;
	if (sk->skc_family == AF_INET)
		return !w[0] && !w[1] && w[2] == bpf_htonl(0xffff) && w[3] == sk->skc_daddr;
	return w[0] == sk->skc_v6_daddr.in6_u.u6_addr32[0] &&
	       w[1] == sk->skc_v6_daddr.in6_u.u6_addr32[1] &&
	       w[2] == sk->skc_v6_daddr.in6_u.u6_addr32[2] &&
	       w[3] == sk->skc_v6_daddr.in6_u.u6_addr32[3];
}

/*
 * The iterator holds the socket's lock, so no connect() can come between comparing and destroying.
 * The cookie is read directly: the helper would assign one to every socket that has none.
 */
static __always_inline void judge(struct sock_common *sk, __u8 proto, __u32 states)
{
	__u64 cookie = sk->skc_cookie.counter;
	struct target *t = bpf_map_lookup_elem(&targets, &cookie);

	if (!t || t->verdict || t->proto != proto)
		return;
	if (!(1U << (sk->skc_state & 31) & states)) {
		t->verdict = VERDICT_LOOSE;
	} else if (!is_peer(sk, t)) {
		t->verdict = VERDICT_ELSEWHERE;
	} else {
		t->error = bpf_sock_destroy(sk);
		t->verdict = t->error ? VERDICT_REFUSED : VERDICT_DESTROYED;
	}
	__sync_fetch_and_add(&decided, 1);
}

SEC("iter/udp")
int destroy_udp(struct bpf_iter__udp *ctx)
{
	struct sock_common *sk = ctx->udp_sk;

	if (sk)
		judge(sk, PROTO_UDP, ESTABLISHED);
	return 0;
}

SEC("iter/tcp")
int destroy_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;

	if (sk)
		judge(sk, PROTO_TCP, TCP_WITH_PEER);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
