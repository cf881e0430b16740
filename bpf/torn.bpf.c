// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * For a test only, never attached. Looks up frontends as the hooks do, and asserts that the backend
 * it reads belongs to the frontend it looked up. User space encodes the owner in each backend:
 * frontend 10.200.a.b has backends 127.a.b.x with port 1000 + the frontend's number.
 */
#include "lib/select.h"

/* Number of frontends; the first is 10.200.0.0. */
volatile const __u32 frontends = 1;

/* A run waits between two steps by reading the clock, at most this many times; a power of two. */
#define DAWDLE 1024
#define DAWDLE_BITS 10

struct tally {
	__u64 runs;
	__u64 hits; /* runs that found a backend */
	__u64 torn; /* hits with a backend of another frontend, or with a mix of two */
};

/* [0]: the results. The program writes, user space reads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally);
} tallies SEC(".maps");

/*
 * Gives user space time to change what was just read, and to reuse what it retired. One run in 16
 * waits, usually for less than a microsecond, sometimes for tens.
 */
static __always_inline void dawdle(void)
{
	__u32 random = bpf_get_prandom_u32();

	if (random & 15)
		return;
	random = (random >> 4 & (DAWDLE - 1)) >> (random >> 16) % DAWDLE_BITS;
	for (__u32 i = 0; i < DAWDLE && i < random; i++)
		bpf_ktime_get_ns();
}

static __always_inline struct backend *look_up(struct service_key *key, __u32 *slot)
{
	struct service *service = bpf_map_lookup_elem(&services, key);
	struct snapshot s;
	struct set *set;
	__u32 index;

	if (!service)
		return 0;
	dawdle();
	index = service->index;
	set = bpf_map_lookup_elem(&sets, &index);
	if (!set)
		return 0;
	s = set_read(set, index);
	if (!s.count)
		return 0;
	dawdle();
	return choose(s, bpf_get_prandom_u32(), slot);
}

SEC("socket")
int torn(void *ctx)
{
	struct service_key key = {.port = bpf_htons(80), .proto = IPPROTO_UDP};
	__u32 n = bpf_get_prandom_u32() % frontends, zero = 0, slot;
	struct tally *t = bpf_map_lookup_elem(&tallies, &zero);
	__u8 high = n >> 8, low = n;
	struct backend *b;

	(void)ctx;
	if (!t)
		return 0;
	t->runs++;
	((__u32 *)key.addr)[2] = bpf_htonl(0x0000ffff);
	key.addr[12] = 10;
	key.addr[13] = 200;
	key.addr[14] = high;
	key.addr[15] = low;
	b = look_up(&key, &slot);
	if (!b)
		return 0;
	t->hits++;
	if (b->addr[12] != 127 || b->addr[13] != high || b->addr[14] != low ||
	    b->port != bpf_htons(1000 + n))
		t->torn++;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
