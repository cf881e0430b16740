/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counters: one addition on this CPU's own copy each. */
#ifndef STRAIT_COUNT_H
#define STRAIT_COUNT_H

#include "maps.h"

/* The last thing that a hook does: nothing waits for these lines of memory, which often are cold. */
static __always_inline void count_connect(__u32 index, __u32 number)
{
	struct frontend_counter *f = bpf_map_lookup_elem(&frontend_counters, &index);
	struct backend_counter *b;

	if (f)
		f->connects++;
	if (!number)
		return;
	b = bpf_map_lookup_elem(&backend_counters, &number);
	if (b)
		b->connects++;
}

static __always_inline void count_refused(__u32 index)
{
	struct frontend_counter *f = bpf_map_lookup_elem(&frontend_counters, &index);

	if (f)
		f->refused++;
}

#endif
