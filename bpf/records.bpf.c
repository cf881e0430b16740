// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Lists the records that sockets have in their own storage: user space reads them from pinned
 * iterators. A separate object, because it needs the kernel's types (BTF). The programs that
 * translate do not, so on a kernel without BTF only the lists are missing.
 */
#include "lib/types.h"
#include <bpf/bpf_helpers.h>

/* The few kernel fields that the programs read; the loader finds their offsets (CO-RE). */
#define KERNEL __attribute__((preserve_access_index))

struct socket;
struct seq_file;
struct bpf_map;

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

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

/* What user space reads for each record. */
struct row {
	__u64 cookie; /* 0: the kernel has given the socket none yet */
	struct flow flow;
};

/* Keeps the type in the object's BTF, from which Go's is generated. */
const struct row *unused __attribute__((unused));

/* A socket without `struct socket` is closed, and only lingers. */
static __always_inline _Bool is_open(const struct sock *sk)
{
	return sk && sk->sk_socket;
}

static __always_inline void put(struct seq_file *seq, const struct sock *sk, const struct flow *f)
{
	struct row r = {.cookie = sk->__sk_common.skc_cookie.counter, .flow = *f};

	bpf_seq_write(seq, &r, sizeof(r));
}

SEC("iter/bpf_sk_storage_map")
int list_connected(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct flow *f = ctx->value;
	const struct sock *sk = ctx->sk;

	if (f && is_open(sk))
		put(ctx->meta->seq, sk, f);
	return 0;
}

SEC("iter/bpf_sk_storage_map")
int list_unconnected(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct flows *all = ctx->value;
	const struct sock *sk = ctx->sk;

	if (!all || !is_open(sk))
		return 0;
	for (__u32 n = 0; n < MAX_MORE && n < all->count; n++)
		put(ctx->meta->seq, sk, &all->flow[n]);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
