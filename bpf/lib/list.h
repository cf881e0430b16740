/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the iterators that list records have in common: the kernel's types, and what they print. */
#ifndef STRAIT_LIST_H
#define STRAIT_LIST_H

#include "types.h"
#include <bpf/bpf_helpers.h>

/* The few kernel fields that the programs read; the loader finds their offsets (CO-RE). */
#define KERNEL __attribute__((preserve_access_index))

struct seq_file;
struct socket;

struct sock_common {
	struct {
		__s64 counter;
	} skc_cookie;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
} KERNEL;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;

/* What user space reads for each record. */
struct row {
	__u64 cookie; /* 0: the kernel has given the socket none yet */
	struct flow flow;
};

static __always_inline void put(struct seq_file *seq, const struct sock *sk, const struct flow *f)
{
	struct row r = {.cookie = sk->__sk_common.skc_cookie.counter, .flow = *f};

	bpf_seq_write(seq, &r, sizeof(r));
}

static __always_inline void put_all(struct seq_file *seq, const struct sock *sk,
				    const struct flows *all)
{
	for (__u32 n = 0; n < MAX_MORE && n < all->count; n++)
		put(seq, sk, &all->flow[n]);
}

#endif
