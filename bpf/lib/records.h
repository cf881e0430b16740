/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The records of sockets: one at home (`sockets`), further ones in `sockets_more`, numbered from 0
 * without gaps so that all can be found by counting. A home of another live socket is left alone.
 */
#ifndef STRAIT_RECORDS_H
#define STRAIT_RECORDS_H

#include "addr.h"
#include "maps.h"

enum side {
	ANY,	  /* the socket's one connected flow, to wherever */
	FRONTEND, /* the flow that dials `at` */
	BACKEND,  /* the flow that gets its answers from `at` */
};

/* Which flow of a socket is meant. */
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
	if (w.side == BACKEND)
		return same(f->backend, f->backend_port, w.at);
	return 1;
}

static __always_inline struct flow flow_of(const struct service_key *frontend,
					   const struct backend *b, __u32 slot, __u8 connected)
{
	struct flow f = {
		.frontend_port = frontend->port,
		.backend_port = b->port,
		.proto = frontend->proto,
		.connected = connected,
		.slot = slot,
	};

	addr_copy(f.frontend, frontend->addr);
	addr_copy(f.backend, b->addr);
	return f;
}

static __always_inline _Bool same_backend(const struct flow *a, const struct flow *b)
{
	return !compare(a->backend, a->backend_port, b->backend, b->backend_port);
}

static __always_inline struct record *home_of(__u64 cookie)
{
	__u32 i = cookie & sockets_mask;

	return bpf_map_lookup_elem(&sockets, &i);
}

static __always_inline struct flow *find_more(const struct record *home, __u64 cookie,
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

static __always_inline struct flow *find(struct record *home, __u64 cookie, struct want w)
{
	if (home->cookie == cookie && is_wanted(&home->flow, w))
		return &home->flow;
	return find_more(home, cookie, w);
}

/* Writes the flow at home if the home is free or the socket's own. */
static __always_inline _Bool settle(struct record *home, __u64 cookie, const struct flow *f)
{
	_Bool mine;

	bpf_spin_lock(&home->lock);
	mine = !home->cookie || home->cookie == cookie;
	if (mine) {
		home->cookie = cookie;
		home->flow = *f;
	}
	bpf_spin_unlock(&home->lock);
	return mine;
}

static __always_inline void spill(struct record *home, __u64 cookie, const struct flow *f)
{
	struct more_key key = {.cookie = cookie};

	for (int n = 0; n < MAX_MORE; n++) {
		key.n = n;
		if (bpf_map_lookup_elem(&sockets_more, &key))
			continue;
		if (!bpf_map_update_elem(&sockets_more, &key, f, BPF_NOEXIST))
			__sync_fetch_and_add(&home->spilled, 1);
		return;
	}
}

/* Writes the flow over the wanted one, else where there is room; with no room it is not kept. */
static __always_inline void remember(struct record *home, __u64 cookie, const struct flow *f,
				     struct want w)
{
	struct flow *more;

	if (home->cookie == cookie && is_wanted(&home->flow, w)) {
		settle(home, cookie, f);
		return;
	}
	more = find_more(home, cookie, w);
	if (more) {
		*more = *f;
		return;
	}
	if (!home->cookie && settle(home, cookie, f))
		return;
	spill(home, cookie, f);
}

/* The socket is gone: so are its records. */
static __always_inline void forget(struct record *home, __u64 cookie)
{
	struct more_key key = {.cookie = cookie};

	if (home->cookie == cookie)
		*(volatile __u64 *)&home->cookie = 0;
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
