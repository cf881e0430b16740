/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Whether the calling process is one that is not served. */
#ifndef STRAIT_OPTOUT_H
#define STRAIT_OPTOUT_H

#include "maps.h"

/* One load while nobody has opted out; else one helper call and lookup per depth that occurs. */
static __always_inline _Bool opted_out(void)
{
	__u32 zero = 0;
	__u64 *levels = bpf_map_lookup_elem(&optout_levels, &zero);
	__u64 left;

	if (!levels)
		return 0;
	left = *(volatile __u64 *)levels;
	for (int level = 0; level < MAX_LEVELS && left; level++, left >>= 1) {
		__u64 id;

		if (!(left & 1))
			continue;
		id = bpf_get_current_ancestor_cgroup_id(level);
		if (id && bpf_map_lookup_elem(&optouts, &id))
			return 1;
	}
	return 0;
}

#endif
