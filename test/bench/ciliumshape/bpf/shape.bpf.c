// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * For the benchmark only. A socket load balancer with the shape of Cilium's: the maps that Cilium
 * documents, and the lookups that its connect4 hook makes for a ClusterIP without affinity. It is
 * written from that layout and holds none of Cilium's code, and it does less than Cilium does.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define PROCEED 1
#define REJECT 0 /* connect() then fails with EPERM; in Cilium, with EHOSTUNREACH or ENOMEM */

#define IPPROTO_TCP 6

/* Slot 0 is the service itself; slots 1 to count hold the IDs of its backends. */
struct service_key {
	__be32 addr;
	__be16 port;
	__u16 slot;
	__u8 proto;
	__u8 scope;
	__u8 pad[2];
};

struct service {
	__u32 backend_id;
	__u16 count;
	__u16 rev_nat_index;
	__u8 flags;
	__u8 flags2;
	__u16 qcount;
};

struct backend {
	__be32 addr;
	__be16 port;
	__u8 proto;
	__u8 flags;
	__u16 cluster_id;
	__u8 zone;
	__u8 pad;
};

struct reverse_key {
	__u64 cookie;
	__be32 addr;
	__be16 port;
	__u16 pad;
};

struct reverse {
	__be32 addr;
	__be16 port;
	__u16 rev_nat_index;
};

/* User space sets all sizes, and whether the first two are preallocated. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct service_key);
	__type(value, struct service);
} services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct backend);
} backends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct reverse_key);
	__type(value, struct reverse);
} reverses SEC(".maps");

/* Writes the entry of this socket and backend, unless it is there already. */
static __always_inline int record(struct bpf_sock_addr *ctx, struct backend *b,
				  struct service_key *to, __u16 rev_nat_index)
{
	struct reverse_key key = {
		.cookie = bpf_get_socket_cookie(ctx),
		.addr = b->addr,
		.port = b->port,
	};
	struct reverse value = {
		.addr = to->addr,
		.port = to->port,
		.rev_nat_index = rev_nat_index,
	};
	struct reverse *old = bpf_map_lookup_elem(&reverses, &key);

	if (old && old->addr == value.addr && old->port == value.port &&
	    old->rev_nat_index == value.rev_nat_index)
		return 0;
	return bpf_map_update_elem(&reverses, &key, &value, BPF_ANY);
}

SEC("cgroup/connect4")
int shape_connect4(struct bpf_sock_addr *ctx)
{
	struct service_key key = {
		.addr = ctx->user_ip4,
		.port = ctx->user_port,
		.proto = ctx->protocol,
	};
	struct service *service, *slot;
	struct backend *b;
	__u64 draw;
	__u32 id;

	service = bpf_map_lookup_elem(&services, &key);
	if (!service)
		return PROCEED;
	if (!service->count)
		return REJECT;
	draw = key.proto == IPPROTO_TCP ? bpf_get_prandom_u32() : bpf_get_socket_cookie(ctx);
	key.slot = draw % service->count + 1;
	slot = bpf_map_lookup_elem(&services, &key);
	if (!slot)
		return REJECT;
	id = slot->backend_id;
	b = bpf_map_lookup_elem(&backends, &id);
	if (!b)
		return REJECT;
	if (record(ctx, b, &key, service->rev_nat_index))
		return REJECT;
	ctx->user_ip4 = b->addr;
	ctx->user_port = b->port;
	return PROCEED;
}

SEC("cgroup/sock_release")
int shape_release(struct bpf_sock *ctx)
{
	struct reverse_key key = {
		.cookie = bpf_get_socket_cookie(ctx),
		.addr = ctx->dst_ip4,
		.port = ctx->dst_port,
	};

	bpf_map_delete_elem(&reverses, &key);
	return PROCEED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
