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

#include "affinity.h"
#include "count.h"
#include "optout.h"
#include "records.h"

enum verdict {
	PASS,	 /* not ours: untouched */
	REWRITE, /* use the changed address */
	REJECT,	 /* fail the system call; the errno is set */
};

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

/* Each connect() chooses again, by a hash of socket and turn: much cheaper than a random number. */
static __always_inline enum verdict forward_connect(struct bpf_sock_addr *ctx,
						    struct service_key *dst, __u32 index)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct record *home = home_of(cookie);
	struct choice c = {.frontend = dst, .connected = 1};
	struct snapshot s;
	struct flow *had;

	if (!home)
		return refuse(dst);
	if (opted_out())
		return PASS;
	if (!set_of(index, &s))
		return PASS;
	if (!s.count)
		return refuse_empty(dst, s);
	c.backend = choose_any(ctx, dst, s, mix(cookie, next_turn(home), dst), &c.slot);
	if (!c.backend)
		return refuse(dst);
	had = find(home, cookie, (struct want){.connected = 1, .side = ANY});
	remember(home, cookie, had, c);
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
 * sendto() is called for every datagram, so the choice is remembered: a socket keeps its backend of
 * a frontend until that leaves the set. A socket that is served stays so when its cgroup opts out.
 */
static __always_inline enum verdict forward_send(struct bpf_sock_addr *ctx, struct service_key *dst,
						 __u32 index)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct record *home = home_of(cookie);
	struct backend *b = 0;
	struct flow *had;
	struct snapshot s;
	_Bool chosen = 0;
	__u32 slot;

	if (!home)
		return refuse(dst);
	had = find(home, cookie, (struct want){.at = dst, .side = FRONTEND});
	if (!had && opted_out())
		return PASS;
	if (!set_of(index, &s))
		return PASS;
	if (!s.count)
		return refuse_empty(dst, s);
	if (had)
		b = keep_flow(s, had, &slot);
	if (!b) {
		b = choose_any(ctx, dst, s, mix(cookie, 0, dst), &slot);
		if (!b)
			return refuse(dst);
		chosen = 1;
	}
	if (!had || had->slot != slot || !leads_to(had, b))
		remember(home, cookie, had, (struct choice){dst, b, slot, 0});
	lead_to(dst, b);
	if (chosen)
		count_connect(index, b->counter);
	return REWRITE;
}

/* Replaces a frontend's address by a backend's. A miss is one lookup and nothing else. */
static __always_inline enum verdict forward(struct bpf_sock_addr *ctx, struct service_key *dst,
					    _Bool connected)
{
	struct service *service = bpf_map_lookup_elem(&services, dst);

	if (!service)
		return PASS;
	return connected ? forward_connect(ctx, dst, service->index)
			 : forward_send(ctx, dst, service->index);
}

/*
 * Replaces a backend's address by the frontend that this socket dialled to get there. Never by the
 * backend's address alone: a client that dialled the pod sees the pod.
 */
static __always_inline enum verdict reverse(struct bpf_sock_addr *ctx, struct service_key *peer,
					    _Bool connected)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct record *home = home_of(cookie);
	struct flow *f;

	if (!home)
		return PASS;
	f = find(home, cookie, (struct want){.at = peer, .connected = connected, .side = BACKEND});
	if (!f)
		return PASS;
	addr_copy(peer->addr, f->frontend);
	peer->port = f->frontend_port;
	return REWRITE;
}

static __always_inline _Bool is_connected(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->state == BPF_TCP_ESTABLISHED;
}

#endif
