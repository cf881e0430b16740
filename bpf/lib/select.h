/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Choose a backend of a set. Knows no socket context. */
#ifndef STRAIT_SELECT_H
#define STRAIT_SELECT_H

#include "addr.h"
#include "maps.h"

/* A set as it was at one moment. */
struct snapshot {
	__u32 base;
	__u32 count;
};

static __always_inline struct snapshot set_read(const struct set *s)
{
	__u64 word = *(const volatile __u64 *)s;

	return (struct snapshot){.base = word >> 32, .count = (__u32)word};
}

static __always_inline struct backend *slot_at(__u32 slot)
{
	return bpf_map_lookup_elem(&backends, &slot);
}

/*
 * One multiplication gives both dice: the high half of random × count is the slot, the low half
 * a fraction that is uniform within the slot, to 1 in 2^32 / count.
 */
static __always_inline struct backend *choose(struct snapshot s, __u32 random, __u32 *slot)
{
	__u64 product = (__u64)random * s.count;
	struct backend *b;

	*slot = s.base + (__u32)(product >> 32);
	b = slot_at(*slot);
	/* With equal weights every threshold is the maximum: no second lookup. */
	if (b && (__u32)product > b->threshold) {
		*slot = s.base + b->alias;
		b = slot_at(*slot);
	}
	return b;
}

/* Spreads (socket, frontend) evenly over 32 bits (the finaliser of MurmurHash3). */
static __always_inline __u32 mix(__u64 cookie, const struct service_key *frontend)
{
	const __u32 *w = (const __u32 *)frontend->addr;
	__u64 h = cookie * 0x9e3779b97f4a7c15ULL;

	h ^= ((__u64)(w[0] ^ w[2]) << 32 | (w[1] ^ w[3])) + ((__u64)frontend->port << 17);
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	return h >> 32;
}

static __always_inline _Bool in_slot(const struct backend *b, const struct flow *f)
{
	return b && !compare(b->addr, b->port, f->backend, f->backend_port);
}

/*
 * The flow's backend if it is still in the set, else none. Usually it is where it was; after a flip
 * the slots of the new set are searched once, which their order makes cheap, and the hint is moved.
 */
static __always_inline struct backend *keep(struct snapshot s, const struct flow *f, __u32 *slot)
{
	__u32 lo = 0, hi = s.count;
	struct backend *b;

	*slot = f->slot;
	if (f->slot - s.base < s.count) {
		b = slot_at(*slot);
		if (in_slot(b, f))
			return b;
	}
	for (int i = 0; i < SEARCH_STEPS && lo < hi; i++) {
		__u32 mid = lo + (hi - lo) / 2;
		int order;

		*slot = s.base + mid;
		b = slot_at(*slot);
		if (!b)
			return 0;
		order = compare(b->addr, b->port, f->backend, f->backend_port);
		if (!order)
			return b;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

#endif
