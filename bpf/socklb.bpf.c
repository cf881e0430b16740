// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Entry points of the socket load balancer: one per hook, all logic in lib/. See README.md. The
 * kernel keeps 15 characters of a name, from which others must see whose the program is.
 */
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
int strait_connect4(struct bpf_sock_addr *ctx)
{
	return out4(ctx, 1);
}

SEC("cgroup/connect6")
int strait_connect6(struct bpf_sock_addr *ctx)
{
	return out6(ctx, 1);
}

SEC("cgroup/sendmsg4")
int strait_sendmsg4(struct bpf_sock_addr *ctx)
{
	return out4(ctx, 0);
}

SEC("cgroup/sendmsg6")
int strait_sendmsg6(struct bpf_sock_addr *ctx)
{
	return out6(ctx, 0);
}

SEC("cgroup/recvmsg4")
int strait_recvmsg4(struct bpf_sock_addr *ctx)
{
	return back4(ctx, is_connected(ctx));
}

SEC("cgroup/recvmsg6")
int strait_recvmsg6(struct bpf_sock_addr *ctx)
{
	return back6(ctx, is_connected(ctx));
}

SEC("cgroup/getpeername4")
int strait_getpeer4(struct bpf_sock_addr *ctx)
{
	return back4(ctx, 1);
}

SEC("cgroup/getpeername6")
int strait_getpeer6(struct bpf_sock_addr *ctx)
{
	return back6(ctx, 1);
}

SEC("cgroup/sock_release")
int strait_release(struct bpf_sock *sk)
{
	__u64 cookie = bpf_get_socket_cookie(sk);
	struct record *home = home_of(cookie);

	if (home)
		forget(home, cookie);
	return 1;
}

/*
 * Never attached: user space runs it with the cookie of a socket that is gone without sock_release,
 * because the records may only be changed by additions, which user space cannot do. The cookie
 * follows the Ethernet header that the kernel demands of a test's packet. Of the types that the
 * kernel runs for user space, this one may use the map of records of layout 2 (spin lock).
 */
SEC("tc")
int strait_forget(struct __sk_buff *skb)
{
	struct record *home;
	__u64 cookie;

	if (bpf_skb_load_bytes(skb, ETHER_BYTES, &cookie, sizeof(cookie)))
		return 0;
	home = home_of(cookie);
	if (home)
		forget(home, cookie);
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
