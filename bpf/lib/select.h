/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Chooses a backend of a set. Knows nothing of sockets. */
#ifndef STRAIT_SELECT_H
#define STRAIT_SELECT_H

#include "addr.h"
#include "maps.h"

/* A set as it was at one moment. */
struct snapshot {
	__u32 base;
	__u32 count;
	__u32 affinity;
	__u32 index; /* the frontend's */
};

static __always_inline struct snapshot set_read(const struct set *s, __u32 index)
{
	__u64 word = *(const volatile __u64 *)s;

	return (struct snapshot){
		.base = word >> 32,
		.count = (__u32)word,
		.affinity = *(const volatile __u32 *)&s->affinity,
		.index = index,
	};
}

static __always_inline struct backend *slot_at(__u32 slot)
{
	return bpf_map_lookup_elem(&backends, &slot);
}

/*
 * One multiplication gives both draws: the high half of random × count is the slot, the low half
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

/* Hashes (cookie, turn, frontend) evenly to 32 bits, with the finaliser of MurmurHash3. */
static __always_inline __u32 mix(__u64 cookie, __u32 turn, const struct service_key *frontend)
{
	const __u32 *w = (const __u32 *)frontend->addr;
	__u64 h = (cookie + ((__u64)turn << 40)) * 0x9e3779b97f4a7c15ULL;

	h ^= ((__u64)(w[0] ^ w[2]) << 32 | (w[1] ^ w[3])) + ((__u64)frontend->port << 17);
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	return h >> 32;
}

/* A backend and the slot where it was last seen. */
struct member {
	__u8 addr[ADDR_BYTES] ALIGNED(8);
	__be16 port;
	__u32 slot;
};

static __always_inline int order(const struct backend *b, const struct member *m)
{
	return compare(b->addr, b->port, m->addr, m->port);
}

/*
 * Returns the member if it is still in the set, otherwise 0. Usually it is where it was. After a
 * flip the slots of the new set are searched once; they are sorted, so it is cheap. Sets m->slot.
 */
static __always_inline struct backend *keep(struct snapshot s, struct member *m)
{
	__u32 lo = 0, hi = s.count;
	struct backend *b;

	if (m->slot - s.base < s.count) {
		b = slot_at(m->slot);
		if (b && !order(b, m))
			return b;
	}
	for (int i = 0; i < SEARCH_STEPS && lo < hi; i++) {
		__u32 mid = lo + (hi - lo) / 2;
		int o;

		m->slot = s.base + mid;
		b = slot_at(m->slot);
		if (!b)
			return 0;
		o = order(b, m);
		if (!o)
			return b;
		if (o < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

#endif
