/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Chooses a backend of a set. Knows nothing of sockets. */
#ifndef STRAIT_SELECT_H
#define STRAIT_SELECT_H

#include "addr.h"
#include "maps.h"

#define NO_SLOT 0xffffffffU

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
 * Searches the slots of a set, which are sorted, for a backend with the address (lo, hi) and port.
 * A function of its own, with numbers only, so that the verifier checks it once for each program.
 * It narrows the search by halves of a power of two: a range between two variables would have the
 * verifier follow all of its sizes.
 */
__noinline __u32 search(__u32 base, __u32 count, __u64 lo, __u64 hi, __u32 port)
{
	struct member m = {.port = port};
	__u32 before = 0; /* slots that are known to come before the member's */

	((__u64 *)m.addr)[0] = lo;
	((__u64 *)m.addr)[1] = hi;
	for (int bit = SEARCH_STEPS - 1; bit >= 0; bit--) {
		__u32 next = before + (1U << bit);
		struct backend *b;
		int o;

		if (next > count)
			continue;
		b = slot_at(base + next - 1);
		if (!b)
			return NO_SLOT;
		o = order(b, &m);
		if (!o)
			return base + next - 1;
		if (o < 0)
			before = next;
	}
	return NO_SLOT;
}

/*
 * Returns the member if it is still in the set, otherwise 0. Usually it is where it was. After a
 * flip the new set is searched once. Sets m->slot.
 */
static __always_inline struct backend *keep(struct snapshot s, struct member *m)
{
	const __u64 *addr = (const __u64 *)m->addr;
	struct backend *b;

	if (m->slot - s.base < s.count) {
		b = slot_at(m->slot);
		if (b && !order(b, m))
			return b;
	}
	m->slot = search(s.base, s.count, addr[0], addr[1], m->port);
	return m->slot == NO_SLOT ? 0 : slot_at(m->slot);
}

#endif
