/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Decides whether the calling process has opted out. */
#ifndef STRAIT_OPTOUT_H
#define STRAIT_OPTOUT_H

#include "maps.h"

static __always_inline _Bool may_hold(const struct optout_sieve *s, __u64 cgroup)
{
	__u32 bit = cgroup * OPTOUT_HASH >> (64 - OPTOUT_HASH_BITS);

	return *(const volatile __u64 *)&s->bits[bit / 64] >> (bit % 64) & 1;
}

/*
 * One load while no cgroup opts out; otherwise a helper call and a load for each depth in use. A
 * function of its own, so that the verifier checks the loop once, and not for each state of a caller.
 */
__noinline int opted_out(void)
{
	__u32 zero = 0;
	struct optout_sieve *s = bpf_map_lookup_elem(&optout_levels, &zero);
	__u64 left;

	if (!s)
		return 0;
	left = *(volatile __u64 *)&s->levels;
	for (int level = 0; level < MAX_LEVELS && left; level++, left >>= 1) {
		__u64 id;

		if (!(left & 1))
			continue;
		id = bpf_get_current_ancestor_cgroup_id(level);
		if (id && may_hold(s, id) && bpf_map_lookup_elem(&optouts, &id))
			return 1;
	}
	return 0;
}

#endif
