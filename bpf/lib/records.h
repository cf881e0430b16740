/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Records of sockets: one at home (`sockets`), others in `sockets_more`, numbered from 0 without
 * gaps so that counting finds all of them. A home that another live socket owns is left alone.
 */
#ifndef STRAIT_RECORDS_H
#define STRAIT_RECORDS_H

#include "addr.h"
#include "maps.h"

enum side {
	ANY,	  /* the socket's one connected flow, whatever its peer */
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
	if (w.side == BACKEND)
		return same(f->backend, f->backend_port, w.at);
	return 1;
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

/* Volatile: other CPUs can change it at any time, so clang must not cache it. */
static __always_inline __u64 owner_of(const struct record *home)
{
	return *(const volatile __u64 *)&home->cookie;
}

static __always_inline _Bool owns(const struct record *home, __u64 cookie)
{
	return !((owner_of(home) ^ cookie) << CLAIM_BITS);
}

static __always_inline struct flow *find(struct record *home, __u64 cookie, struct want w)
{
	if (owns(home, cookie) && is_wanted(&home->flow, w))
		return &home->flow;
	return find_more(home, cookie, w);
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

static __always_inline void spill(struct record *home, __u64 cookie, struct choice c)
{
	struct more_key key = {.cookie = cookie};
	struct flow f = {};

	write_flow(&f, c);
	for (int n = 0; n < MAX_MORE; n++) {
		key.n = n;
		if (bpf_map_lookup_elem(&sockets_more, &key))
			continue;
		if (!bpf_map_update_elem(&sockets_more, &key, &f, BPF_NOEXIST))
			__sync_fetch_and_add(&home->spilled, 1);
		return;
	}
}

/* Writes the choice over `had` if there is one, otherwise where there is room, or not at all. */
static __always_inline void remember(struct record *home, __u64 cookie, struct flow *had,
				     struct choice c)
{
	if (had) {
		write_flow(had, c);
	} else if (claim(home)) {
		write_flow(&home->flow, c);
		__sync_fetch_and_add(&home->cookie, cookie - CLAIM);
	} else {
		spill(home, cookie, c);
	}
}

/* Removes the records of a socket that is gone. */
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
