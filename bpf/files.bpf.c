// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Lists the records that sockets have in their own storage, like records.bpf.c, but walks the open
 * files of all processes: some kernels that are locked down refuse iterators over maps. A socket
 * that several processes have is listed for each of them. One that no process has, such as the
 * kernel's own, is not listed.
 */
#include "lib/list.h"
#include "lib/storage.h"

struct task_struct;
struct file;

struct socket {
	struct sock *sk;
} KERNEL;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} KERNEL;

/* The socket of the file that the iterator is at, or NULL. */
static __always_inline struct sock *socket_of(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *s = file ? bpf_sock_from_file(file) : 0;

	return s ? s->sk : 0;
}

SEC("iter/task_file")
int files_connected(struct bpf_iter__task_file *ctx)
{
	struct sock *sk = socket_of(ctx);
	struct flow *f = sk ? bpf_sk_storage_get(&connected_flows, sk, 0, 0) : 0;

	if (f)
		put(ctx->meta->seq, sk, f);
	return 0;
}

SEC("iter/task_file")
int files_unconnected(struct bpf_iter__task_file *ctx)
{
	struct sock *sk = socket_of(ctx);
	struct flows *all = sk ? bpf_sk_storage_get(&unconnected_flows, sk, 0, 0) : 0;

	if (all)
		put_all(ctx->meta->seq, sk, all);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
