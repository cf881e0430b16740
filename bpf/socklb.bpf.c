// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Entry points of the socket load balancer: one per hook, all logic in lib/. See README.md. */
#include "lib/xlate.h"

static __always_inline int out4(struct bpf_sock_addr *ctx, _Bool connected)
{
	struct service_key dst = load4(ctx);
	enum verdict v = forward(ctx, &dst, connected);

	if (v == REWRITE)
		store4(ctx, &dst);
	return v != REJECT;
}

static __always_inline int out6(struct bpf_sock_addr *ctx, _Bool connected)
{
	struct service_key dst = load6(ctx);
	enum verdict v = forward(ctx, &dst, connected);

	if (v == REWRITE)
		store6(ctx, &dst);
	return v != REJECT;
}

static __always_inline int back4(struct bpf_sock_addr *ctx, _Bool connected)
{
	struct service_key peer = load4(ctx);

	if (reverse(ctx, &peer, connected) == REWRITE)
		store4(ctx, &peer);
	return 1;
}

static __always_inline int back6(struct bpf_sock_addr *ctx, _Bool connected)
{
	struct service_key peer = load6(ctx);

	if (reverse(ctx, &peer, connected) == REWRITE)
		store6(ctx, &peer);
	return 1;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	return out4(ctx, 1);
}

SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	return out6(ctx, 1);
}

SEC("cgroup/sendmsg4")
int sendmsg4(struct bpf_sock_addr *ctx)
{
	return out4(ctx, 0);
}

SEC("cgroup/sendmsg6")
int sendmsg6(struct bpf_sock_addr *ctx)
{
	return out6(ctx, 0);
}

SEC("cgroup/recvmsg4")
int recvmsg4(struct bpf_sock_addr *ctx)
{
	return back4(ctx, is_connected(ctx));
}

SEC("cgroup/recvmsg6")
int recvmsg6(struct bpf_sock_addr *ctx)
{
	return back6(ctx, is_connected(ctx));
}

SEC("cgroup/getpeername4")
int getpeername4(struct bpf_sock_addr *ctx)
{
	return back4(ctx, 1);
}

SEC("cgroup/getpeername6")
int getpeername6(struct bpf_sock_addr *ctx)
{
	return back6(ctx, 1);
}

SEC("cgroup/sock_release")
int sock_release(struct bpf_sock *sk)
{
	__u64 cookie = bpf_get_socket_cookie(sk);
	struct record *home = home_of(cookie);

	if (home)
		forget(home, cookie);
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
