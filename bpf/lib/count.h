/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counters: each event is one addition to this CPU's own copy. */
#ifndef STRAIT_COUNT_H
#define STRAIT_COUNT_H

#include "maps.h"

/* Hooks call this last, so that nothing waits for these cache lines, which are often cold. */
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

static __always_inline void count_lost(void)
{
	__u32 zero = 0;
	struct totals *t = bpf_map_lookup_elem(&totals, &zero);

	if (t)
		t->lost++;
}

static __always_inline void count_bound(void)
{
	__u32 zero = 0;
	struct totals *t = bpf_map_lookup_elem(&totals, &zero);

	if (t)
		t->bound++;
}

#endif
