/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Forward and reverse translation, and the records between them.
 *
 * The kernel holds the socket's lock around every hook but sock_release, which runs after the last
 * file descriptor is gone. So one socket's hooks never run at the same time; those of two sockets
 * that share a home do.
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

/* ECONNREFUSED: EPERM and ENXIO make in-kernel clients such as NFS retry for ever. */
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

static __always_inline enum verdict lead_to(struct service_key *dst, const struct flow *f)
{
	addr_copy(dst->addr, f->backend);
	dst->port = f->backend_port;
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

/* connect() chooses anew, by chance. */
static __always_inline enum verdict forward_connect(struct bpf_sock_addr *ctx,
						    struct service_key *dst, struct snapshot s)
{
	struct record *home;
	struct backend *b;
	struct flow f;
	__u64 cookie;
	__u32 slot;

	if (opted_out())
		return PASS;
	if (!s.count)
		return refuse_empty(dst, s);
	b = choose_any(ctx, dst, s, bpf_get_prandom_u32(), &slot);
	cookie = bpf_get_socket_cookie(ctx);
	home = home_of(cookie);
	if (!b || !home)
		return refuse(dst);
	count_connect(s.index, b->counter);
	f = flow_of(dst, b, slot, 1);
	remember(home, cookie, &f, (struct want){.connected = 1, .side = ANY});
	return lead_to(dst, &f);
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
 * sendto() has no moment of choice, so one is remembered: a socket keeps its backend of a frontend
 * until that backend leaves the set. One that is being served stays so when its cgroup opts out.
 */
static __always_inline enum verdict forward_send(struct bpf_sock_addr *ctx, struct service_key *dst,
						 struct snapshot s)
{
	struct want want = {.at = dst, .side = FRONTEND};
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct record *home = home_of(cookie);
	struct backend *b = 0;
	struct flow f, *had;
	__u32 slot;

	if (!home)
		return refuse(dst);
	had = find(home, cookie, want);
	if (!had && opted_out())
		return PASS;
	if (!s.count)
		return refuse_empty(dst, s);
	if (had)
		b = keep_flow(s, had, &slot);
	if (!b) {
		b = choose_any(ctx, dst, s, mix(cookie, dst), &slot);
		if (!b)
			return refuse(dst);
		count_connect(s.index, b->counter);
	}
	f = flow_of(dst, b, slot, 0);
	if (!had || had->slot != slot || !same_backend(had, &f))
		remember(home, cookie, &f, want);
	return lead_to(dst, &f);
}

/* A frontend's address becomes a backend's. A miss is one lookup and nothing else. */
static __always_inline enum verdict forward(struct bpf_sock_addr *ctx, struct service_key *dst,
					    _Bool connected)
{
	struct service *service = bpf_map_lookup_elem(&services, dst);
	struct snapshot s;
	struct set *set;
	__u32 index;

	if (!service)
		return PASS;
	index = service->index;
	set = bpf_map_lookup_elem(&sets, &index);
	if (!set)
		return PASS;
	s = set_read(set, index);
	return connected ? forward_connect(ctx, dst, s) : forward_send(ctx, dst, s);
}

/*
 * A backend's address becomes the frontend that this socket dialled to get there. Never by the
 * backend's address alone: who dialled the pod sees the pod.
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
