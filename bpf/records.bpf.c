// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Lists the records that sockets have in their own storage: user space reads them from pinned
 * iterators. A separate object, because it needs the kernel's types (BTF). The programs that
 * translate do not, so on a kernel without BTF only the lists are missing.
 */
#include "lib/list.h"

/* Keeps the type in the object's BTF, from which Go's is generated. */
const struct row *unused __attribute__((unused));

struct bpf_map;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

/* A socket without `struct socket` is closed, and only lingers. */
static __always_inline _Bool is_open(const struct sock *sk)
{
	return sk && sk->sk_socket;
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

	if (all && is_open(sk))
		put_all(ctx->meta->seq, sk, all);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
