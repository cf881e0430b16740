/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Records of sockets: one at home (`sockets`), all others in the storage of the socket itself, which
 * the kernel frees with the socket. So no socket can take the place of another's record, whatever
 * kind it is and however it ends. A home that another live socket owns is left alone.
 */
#ifndef STRAIT_RECORDS_H
#define STRAIT_RECORDS_H

#include "addr.h"
#include "count.h"
#include "maps.h"

enum side {
	FRONTEND, /* the flow that dials `at` */
	BACKEND,  /* the flow that gets its answers from `at` */
};

/* Selects a flow of a socket. */
struct want {
	const struct service_key *at;
	_Bool connected;
	enum side side;
};

static __always_inline _Bool is_wanted(const struct flow *f, struct want w)
{
	if (f->connected != w.connected)
		return 0;
	if (w.side == FRONTEND)
		return same(f->frontend, f->frontend_port, w.at);
	return same(f->backend, f->backend_port, w.at);
}

/* What to remember: the backend that a socket got for a frontend. */
struct choice {
	const struct service_key *frontend;
	const struct backend *backend;
	__u32 slot;
	__u8 connected;
};

static __always_inline void write_flow(struct flow *f, struct choice c)
{
	addr_copy(f->frontend, c.frontend->addr);
	addr_copy(f->backend, c.backend->addr);
	f->frontend_port = c.frontend->port;
	f->backend_port = c.backend->port;
	f->proto = c.frontend->proto;
	f->connected = c.connected;
	f->slot = c.slot;
}

static __always_inline _Bool leads_to(const struct flow *f, const struct backend *b)
{
	return !compare(f->backend, f->backend_port, b->addr, b->port);
}

static __always_inline struct record *home_of(__u64 cookie)
{
	__u32 i = cookie & sockets_mask;

	return bpf_map_lookup_elem(&sockets, &i);
}

/* Volatile: other CPUs can change it at any time, so clang must not cache it. */
static __always_inline __u64 owner_of(const struct record *home)
{
	return *(const volatile __u64 *)&home->cookie;
}

static __always_inline _Bool owns(const struct record *home, __u64 cookie)
{
	return !((owner_of(home) ^ cookie) << CLAIM_BITS);
}

/*
 * Returns flow n of at most MAX_MORE. After a loop the verifier knows n, and would check all that
 * follows once for each of its values: adding a zero that it does not know makes them one case.
 * Assembly keeps clang from moving the mask, by which the verifier knows the bounds.
 */
static __always_inline struct flow *flow_at(struct flows *all, __u32 n)
{
	__u64 i = n + *(const volatile __u32 *)&all->pad;

	asm volatile("%0 &= %1" : "+r"(i) : "i"(MAX_MORE - 1));
	return &all->flow[i];
}

/* Finds a flow in the socket's own storage. */
static __always_inline struct flow *find_stored(struct bpf_sock *sk, struct want w)
{
	struct flows *all;

	if (w.connected) {
		struct flow *f = bpf_sk_storage_get(&connected_flows, sk, 0, 0);

		return f && is_wanted(f, w) ? f : 0;
	}
	all = bpf_sk_storage_get(&unconnected_flows, sk, 0, 0);
	if (!all)
		return 0;
	for (__u32 n = 0; n < MAX_MORE && n < all->count; n++)
		if (is_wanted(&all->flow[n], w))
			return flow_at(all, n);
	return 0;
}

/*
 * Finds a flow that a program of layout 3 or older wrote. Only replies need it: the next connect()
 * or sendto() writes a new one.
 */
static __always_inline struct flow *find_older(const struct record *home, __u64 cookie,
					       struct want w)
{
	struct more_key key = {.cookie = cookie};

	if (!home->spilled)
		return 0;
	for (int n = 0; n < MAX_MORE; n++) {
		struct flow *f;

		key.n = n;
		f = bpf_map_lookup_elem(&sockets_more, &key);
		if (!f || is_wanted(f, w))
			return f;
	}
	return 0;
}

/* A socket and where its records are. */
struct owner {
	struct bpf_sock *sk;
	struct record *home;
	__u64 cookie;
};

static __always_inline struct flow *find(const struct owner *o, struct want w)
{
	if (owns(o->home, o->cookie) && is_wanted(&o->home->flow, w))
		return &o->home->flow;
	return find_stored(o->sk, w);
}

/* Returns a number other than at the socket's last connect(). Lost additions do not matter. */
static __always_inline __u32 next_turn(struct record *home)
{
	volatile __u32 *turn = &home->flow.turn;

	return ++*turn;
}

/* Claims the home if it is free; see struct record. */
static __always_inline _Bool claim(struct record *home)
{
	if (!may_claim || owner_of(home))
		return 0;
	__sync_fetch_and_add(&home->cookie, CLAIM);
	if (owner_of(home) == CLAIM)
		return 1;
	__sync_fetch_and_add(&home->cookie, -CLAIM);
	return 0;
}

/* Writes the choice into the storage of the socket, or nowhere if the kernel gives no room. */
static __always_inline void store(struct bpf_sock *sk, struct choice c)
{
	struct flows *all;
	__u32 n;

	if (c.connected) {
		struct flow *f =
			bpf_sk_storage_get(&connected_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

		if (f)
			write_flow(f, c);
		else
			count_lost();
		return;
	}
	all = bpf_sk_storage_get(&unconnected_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!all) {
		count_lost();
		return;
	}
	n = all->count;
	if (n >= MAX_MORE) {
		count_lost();
		return;
	}
	write_flow(flow_at(all, n), c);
	all->count = n + 1;
}

/*
 * A subflow of an MPTCP socket belongs to the kernel, which closes it without calling sock_release.
 * The program asks for the peer of the socket above it, so the record is kept with that one. Returns
 * whether the socket is such a subflow.
 */
static __always_inline _Bool store_above(struct bpf_sock *sk, struct choice c)
{
	struct mptcp_sock *above;
	struct flow *f;

	if (!has_mptcp_sock)
		return 0;
	above = bpf_skc_to_mptcp_sock(sk);
	if (!above)
		return 0;
	f = bpf_sk_storage_get(&connected_flows, above, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (f)
		write_flow(f, c);
	else
		count_lost();
	return 1;
}

/* Writes the choice of a connect() over that of the socket's last one, or where there is room. */
static __always_inline void remember_connect(const struct owner *o, struct choice c)
{
	struct record *home = o->home;

	if (owns(home, o->cookie) && home->flow.connected) {
		write_flow(&home->flow, c);
	} else if (claim(home)) {
		write_flow(&home->flow, c);
		__sync_fetch_and_add(&home->cookie, o->cookie - CLAIM);
	} else {
		store(o->sk, c);
	}
}

/* Writes the choice over `had` if there is one, otherwise where there is room. */
static __always_inline void remember(const struct owner *o, struct flow *had, struct choice c)
{
	if (had) {
		write_flow(had, c);
	} else if (claim(o->home)) {
		write_flow(&o->home->flow, c);
		__sync_fetch_and_add(&o->home->cookie, o->cookie - CLAIM);
	} else {
		store(o->sk, c);
	}
}

/* Frees the home of a socket that is gone, and what an older layout wrote about it. */
static __always_inline void forget(struct record *home, __u64 cookie)
{
	struct more_key key = {.cookie = cookie};

	if (owns(home, cookie))
		__sync_fetch_and_add(&home->cookie, -cookie);
	if (!home->spilled)
		return;
	for (int n = 0; n < MAX_MORE; n++) {
		key.n = n;
		if (bpf_map_delete_elem(&sockets_more, &key))
			return;
		__sync_fetch_and_add(&home->spilled, -1);
	}
}

#endif
