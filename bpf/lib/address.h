/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Decides whether an address is strait's, with all of its ports. */
#ifndef STRAIT_ADDRESS_H
#define STRAIT_ADDRESS_H

#include "addr.h"
#include "maps.h"

enum whose {
	FOREIGN, /* certainly not strait's: leave the call alone */
	MAYBE,	 /* the maps know */
	RANGE,	 /* in a range of strait's */
};

static __always_inline _Bool in_range(const struct range *r, __u64 hi, __u64 lo)
{
	return (hi & r->mask[0]) == r->net[0] && (lo & r->mask[1]) == r->net[1];
}

/* A foreign address usually costs a multiplication and two loads. */
static __always_inline enum whose whose_is(const struct service_key *a)
{
	const __u32 *w = (const __u32 *)a->addr;
	__u64 hi = (__u64)w[1] << 32 | w[0], lo = (__u64)w[3] << 32 | w[2];
	__u32 bit = (hi + lo) * SIEVE_HASH >> (64 - ADDRESS_HASH_BITS);
	__u32 zero = 0;
	const struct address_sieve *s = bpf_map_lookup_elem(&address_sieve, &zero);
	__u32 ranges;

	if (!s)
		return MAYBE;
	ranges = *(const volatile __u32 *)&s->ranges;
	if (ranges > 0 && in_range(&s->range[0], hi, lo))
		return RANGE;
	if (ranges > 1 && in_range(&s->range[1], hi, lo))
		return RANGE;
	if (*(const volatile __u64 *)&s->bits[bit / 64] >> (bit % 64) & 1)
		return MAYBE;
	return FOREIGN;
}

/* Reports whether strait answers for every port of an address outside its ranges. */
static __always_inline _Bool is_listed(const struct service_key *a)
{
	struct address key;

	addr_copy(key.addr, a->addr);
	return !!bpf_map_lookup_elem(&addresses, &key);
}

#endif
