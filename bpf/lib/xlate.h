/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Forward and reverse translation, and the records between them.
 *
 * The kernel holds the socket's lock around every hook except sock_release, which runs after the
 * last file descriptor is gone. So the hooks of one socket never run at the same time; those of two
 * sockets that share a home can.
 */
#ifndef STRAIT_XLATE_H
#define STRAIT_XLATE_H

#include "address.h"
#include "affinity.h"
#include "count.h"
#include "optout.h"
#include "records.h"

enum verdict {
	PASS,	 /* not ours: untouched */
	REWRITE, /* use the changed address */
	REJECT,	 /* fail the system call; the errno is set */
};

static __always_inline _Bool is_connected(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->state == BPF_TCP_ESTABLISHED;
}

/* ECONNREFUSED: EPERM and ENXIO make in-kernel clients such as NFS retry forever. */
static __always_inline enum verdict refuse(struct service_key *dst)
{
	if (has_set_retval) {
		bpf_set_retval(-ECONNREFUSED);
		return REJECT;
	}
	make_nowhere(dst);
	return REWRITE;
}

static __always_inline enum verdict refuse_empty(struct service_key *dst, struct snapshot s)
{
	count_refused(s.index);
	return refuse(dst);
}

static __always_inline enum verdict lead_to(struct service_key *dst, const struct backend *b)
{
	addr_copy(dst->addr, b->addr);
	dst->port = b->port;
	return REWRITE;
}

static __always_inline struct backend *choose_any(struct bpf_sock_addr *ctx,
						  const struct service_key *dst, struct snapshot s,
						  __u32 random, __u32 *slot)
{
	if (s.affinity)
		return choose_affine(ctx, dst, s, random, slot);
	return choose(s, random, slot);
}

static __always_inline _Bool set_of(__u32 index, struct snapshot *s)
{
	struct set *set = bpf_map_lookup_elem(&sets, &index);

	if (set)
		*s = set_read(set, index);
	return !!set;
}

/* Fails a call to a port that nobody serves, at an address whose ports are all strait's. */
static __always_inline enum verdict refuse_unserved(struct service_key *dst)
{
	if (opted_out())
		return PASS;
	return refuse(dst);
}

/*
 * A socket that is bound to a source port can fail in the kernel with EADDRNOTAVAIL, if another one
 * reached the same backend from the same port through another frontend.
 */
static __always_inline _Bool is_bound(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->src_port;
}

/* Each connect() chooses again, by a hash of socket and turn: much cheaper than a random number. */
static __always_inline enum verdict forward_connect(struct bpf_sock_addr *ctx,
						    struct service_key *dst, __u32 index)
{
	struct owner o = {.sk = ctx->sk, .cookie = bpf_get_socket_cookie(ctx)};
	struct choice c = {.frontend = dst, .connected = 1};
	struct snapshot s;

	o.home = home_of(o.cookie);
	if (!o.home || !o.sk)
		return refuse(dst);
	if (opted_out())
		return PASS;
	if (!set_of(index, &s))
		return PASS;
	if (!s.count)
		return refuse_empty(dst, s);
	c.backend = choose_any(ctx, dst, s, mix(o.cookie, next_turn(o.home), dst), &c.slot);
	if (!c.backend)
		return refuse(dst);
	if (dst->proto != IPPROTO_TCP || !store_above(o.sk, c))
		remember_connect(&o, c);
	if (dst->proto == IPPROTO_TCP && is_bound(ctx))
		count_bound();
	lead_to(dst, c.backend);
	count_connect(index, c.backend->counter);
	return REWRITE;
}

static __always_inline struct backend *keep_flow(struct snapshot s, const struct flow *f,
						 __u32 *slot)
{
	struct member m = {.port = f->backend_port, .slot = f->slot};
	struct backend *b;

	addr_copy(m.addr, f->backend);
	b = keep(s, &m);
	*slot = m.slot;
	return b;
}

/*
 * A connected socket that names its own frontend once more goes where connect() led it: the kernel
 * gives it answers from there only.
 */
static __always_inline struct flow *find_peer(struct bpf_sock_addr *ctx, const struct owner *o,
					      const struct service_key *dst)
{
	if (!is_connected(ctx))
		return 0;
	return find(o, (struct want){.at = dst, .connected = 1, .side = FRONTEND});
}

static __always_inline enum verdict follow(struct service_key *dst, const struct flow *f)
{
	addr_copy(dst->addr, f->backend);
	dst->port = f->backend_port;
	return REWRITE;
}

/*
 * sendto() is called for every datagram, so the choice is remembered: a socket keeps its backend of
 * a frontend until that leaves the set. A socket that is served stays so when its cgroup opts out.
 */
static __always_inline enum verdict forward_send(struct bpf_sock_addr *ctx, struct service_key *dst,
						 __u32 index)
{
	struct owner o = {.sk = ctx->sk, .cookie = bpf_get_socket_cookie(ctx)};
	struct backend *b = 0;
	struct flow *had;
	struct snapshot s;
	_Bool chosen = 0;
	__u32 slot;

	o.home = home_of(o.cookie);
	if (!o.home || !o.sk)
		return refuse(dst);
	had = find_peer(ctx, &o, dst);
	if (had)
		return follow(dst, had);
	had = find(&o, (struct want){.at = dst, .side = FRONTEND});
	if (!had && opted_out())
		return PASS;
	if (!set_of(index, &s))
		return PASS;
	if (!s.count)
		return refuse_empty(dst, s);
	if (had)
		b = keep_flow(s, had, &slot);
	if (!b) {
		b = choose_any(ctx, dst, s, mix(o.cookie, 0, dst), &slot);
		if (!b)
			return refuse(dst);
		chosen = 1;
	}
	if (!had || had->slot != slot || !leads_to(had, b))
		remember(&o, had, (struct choice){dst, b, slot, 0});
	lead_to(dst, b);
	if (chosen)
		count_connect(index, b->counter);
	return REWRITE;
}

/*
 * Replaces a frontend's address by a backend's. An address that is not strait's usually ends at the
 * sieve, and never costs more than the sieve and two lookups.
 */
static __always_inline enum verdict forward(struct bpf_sock_addr *ctx, struct service_key *dst,
					    _Bool connected)
{
	enum whose whose = whose_is(dst);
	struct service *service;

	if (whose == FOREIGN)
		return PASS;
	service = bpf_map_lookup_elem(&services, dst);
	if (service)
		return connected ? forward_connect(ctx, dst, service->index)
				 : forward_send(ctx, dst, service->index);
	if (dst->proto != IPPROTO_TCP && dst->proto != IPPROTO_UDP)
		return PASS;
	if (whose == RANGE || is_listed(dst))
		return refuse_unserved(dst);
	return PASS;
}

/*
 * Replaces a backend's address by the frontend that this socket dialled to get there. Never by the
 * backend's address alone: a client that dialled the pod sees the pod.
 */
static __always_inline enum verdict reverse(struct bpf_sock_addr *ctx, struct service_key *peer,
					    _Bool connected)
{
	struct owner o = {.sk = ctx->sk, .cookie = bpf_get_socket_cookie(ctx)};
	struct want w = {.at = peer, .connected = connected, .side = BACKEND};
	struct flow *f;

	o.home = home_of(o.cookie);
	if (!o.home || !o.sk)
		return PASS;
	f = find(&o, w);
	if (!f)
		f = find_older(o.home, o.cookie, w);
	if (!f)
		return PASS;
	addr_copy(peer->addr, f->frontend);
	peer->port = f->frontend_port;
	return REWRITE;
}

#endif
