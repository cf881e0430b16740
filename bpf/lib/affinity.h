/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Session affinity: a client keeps its backend of a frontend until it has been away too long. */
#ifndef STRAIT_AFFINITY_H
#define STRAIT_AFFINITY_H

#include "select.h"

static __always_inline _Bool is_fresh(const struct affinity *a, struct snapshot s, __u64 now)
{
	/* Signed: another CPU may have set a->used after `now` was read. */
	return (__s64)(now - a->used) < (__s64)s.affinity * NS_PER_SECOND;
}

/* Returns the backend that the client keeps, if the entry is fresh and the set still has it. */
static __always_inline struct backend *adhere(struct affinity *a, struct snapshot s, __u64 now,
					      __u32 *slot)
{
	struct member m = {.port = a->port, .slot = a->slot};
	struct backend *b;

	if (!is_fresh(a, s, now))
		return 0;
	addr_copy(m.addr, a->backend);
	b = keep(s, &m);
	if (!b)
		return 0;
	/* If the element is another key's by now, that client keeps its backend a bit longer. */
	*(volatile __u64 *)&a->used = now;
	if (a->slot != m.slot)
		*(volatile __u32 *)&a->slot = m.slot;
	*slot = m.slot;
	return b;
}

/*
 * Returns the backend that a connection of the same moment chose, if it is still where that one
 * found it; otherwise b. A search would only help if the set flips at that moment too.
 */
static __always_inline struct backend *follow_first(const struct affinity *a, struct snapshot s,
						    struct backend *b, __u32 *slot)
{
	struct member m = {.port = a->port, .slot = a->slot};
	struct backend *first;

	addr_copy(m.addr, a->backend);
	if (m.slot - s.base >= s.count)
		return b;
	first = slot_at(m.slot);
	if (!first || order(first, &m))
		return b;
	*slot = m.slot;
	return first;
}

/*
 * Like choose(), but a client that chose before gets the same backend again. If two connections are
 * the first at the same time, the one that fails to insert its entry follows the other. Connections
 * that find the same outdated entry agree without seeing each other: its last use is their seed.
 */
static __always_inline struct backend *choose_affine(struct bpf_sock_addr *ctx,
						     const struct service_key *dst,
						     struct snapshot s, __u32 random, __u32 *slot)
{
	struct affinity_key key = {.frontend = *dst, .client = bpf_get_netns_cookie(ctx)};
	__u64 now = bpf_ktime_get_ns();
	struct affinity fresh = {.used = now};
	struct affinity *a = bpf_map_lookup_elem(&affinities, &key);
	struct backend *b;

	if (a) {
		b = adhere(a, s, now, slot);
		if (b)
			return b;
		random = mix(key.client ^ a->used, 0, dst);
	}
	b = choose(s, random, slot);
	if (!b)
		return 0;
	addr_copy(fresh.backend, b->addr);
	fresh.port = b->port;
	fresh.slot = *slot;
	if (!bpf_map_update_elem(&affinities, &key, &fresh, a ? BPF_ANY : BPF_NOEXIST) || a)
		return b;
	a = bpf_map_lookup_elem(&affinities, &key);
	return a ? follow_first(a, s, b, slot) : b;
}

#endif
