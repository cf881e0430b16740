/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Every map key and value: the contract with Go, whose types are generated from these.
 * Addresses are 16 bytes, IPv4 as ::ffff:a.b.c.d. Padding is explicit and zero.
 */
#ifndef STRAIT_TYPES_H
#define STRAIT_TYPES_H

#include <linux/bpf.h>

#define ADDR_BYTES 16
/* Number of bits in struct optout_sieve; a power of two. */
#define OPTOUT_BITS 4096
/* Number of bits in struct address_sieve: 16 KiB, so that it stays in a processor's cache. */
#define ADDRESS_HASH_BITS 17
#define ADDRESS_BITS (1 << ADDRESS_HASH_BITS)
#define MAX_RANGES 2

/*
 * Maximum number of records that one unconnected socket has beside its home in `sockets`. Only a
 * socket that sends to several frontends needs more than one. Beyond the limit, datagrams are still
 * sent, to a backend chosen by hash; only their replies show the backend's address.
 */
#define MAX_MORE 32

#define ALIGNED(n) __attribute__((aligned(n)))

/* An address, port and protocol; a frontend's is the key of `services`. */
struct service_key {
	__u8 addr[ADDR_BYTES] ALIGNED(4);
	__be16 port;
	__u8 proto; /* IPPROTO_TCP, IPPROTO_UDP */
	__u8 pad;
};

/* What a frontend keeps for its whole life: the index of its set. */
struct service {
	__u32 index;
};

/*
 * A frontend's backends: slots base … base+count-1 of `backends`. Both form one u64, base << 32 |
 * count, written by one store and read by one load, so readers see the old or the new set, never
 * a mix. count 0 refuses connections. The rest is in the same cache line and is valid with any set.
 */
struct set {
	__u32 count; /* little endian: the low half */
	__u32 base;
	__u32 affinity; /* seconds that a client keeps its backend after its last connection, or 0 */
	__u32 pad;
} ALIGNED(8);

/*
 * A slot: one backend of one set. The slots of a set are sorted by (addr, port).
 * Alias method: of the traffic that is drawn to a slot, it keeps (threshold+1)/2^32, and the rest
 * goes to the slot `alias` of the same set.
 */
struct backend {
	__u8 addr[ADDR_BYTES] ALIGNED(8);
	__be16 port;
	__u16 weight_minus_1; /* for user space: the weight from which thresholds are computed */
	__u32 threshold;
	__u32 alias;   /* relative to the set's base */
	__u32 counter; /* number in `backend_counters`; outlives the slot. 0 is not counted */
};

/* One translation of one socket: what the application dialled and what it got. */
struct flow {
	__u8 frontend[ADDR_BYTES] ALIGNED(8);
	__u8 backend[ADDR_BYTES] ALIGNED(8);
	__be16 frontend_port;
	__be16 backend_port;
	__u8 proto;
	__u8 connected; /* 1 by connect(), 0 by sendto() and the like */
	__u8 pad[2];
	__u32 slot; /* where the backend was found; a hint */
	/* In a home, whoever owns it: changes with each connect() of a socket that maps here. */
	__u32 turn;
};

/*
 * Home of the sockets whose cookie maps here, one at a time. Only its owner reads and writes the
 * flow (except the turn), under its socket's lock.
 *
 * `cookie` is a sum: the owner's cookie, plus CLAIM for each socket that is trying to become the
 * owner. 0 is free. A socket that finds it free adds CLAIM and reads again. If it reads exactly
 * CLAIM, the home is its own: it writes the flow and turns CLAIM into its cookie by one addition.
 * Otherwise it takes its CLAIM back and goes elsewhere. Two sockets that collide can both give up,
 * but cannot both win: of two additions to one word one is second, and its author sees the first
 * until that is taken back. All this needs is that all CPUs see the changes of one word in the same
 * order, which every architecture guarantees without barriers: BPF's additions before 5.12 fetch
 * nothing and order nothing. What the previous owner wrote into the flow is older than its release:
 * between its last hook and sock_release the kernel drops the last file reference, a barrier.
 *
 * The lower bits tell owners apart; they repeat after 2^48 sockets. Cookies that the kernel counts
 * downwards (made in an interrupt) are negative; sums and lower bits are right for them too.
 */
struct record {
	__u64 cookie;
	__u32 pad;     /* a spin lock in layout 2, whose map is still in use: do not touch */
	__u32 spilled; /* number of `sockets_more` entries whose cookies map here; see there */
	struct flow flow;
};

/* The flows that an unconnected socket has beside the one at home, in its own storage. */
struct flows {
	__u32 count;
	__u32 pad;
	struct flow flow[MAX_MORE];
};

/* What is counted once per node, not per frontend. One CPU's part. */
struct totals {
	__u64 lost;  /* choices that were not remembered for want of room */
	__u64 bound; /* TCP connections of sockets that are bound to a source port */
};

/* Up to layout 3: the n-th record of a socket outside its home, from 0 without gaps. */
struct more_key {
	__u64 cookie;
	__u32 n;
	__u32 pad;
};

/*
 * Counts of one frontend: connections, and choices for an unconnected socket's datagrams. One CPU's
 * part, added to without a lock: a preemptible kernel can, very rarely, lose an addition.
 */
struct frontend_counter {
	__u64 connects;
	__u64 refused; /* because there was no backend */
};

/* Counts of one backend of one frontend. */
struct backend_counter {
	__u64 connects;
};

/* A client of a frontend with session affinity. */
struct affinity_key {
	struct service_key frontend;
	__u32 pad;
	__u64 client; /* cookie of its network namespace: in Kubernetes that is the pod */
};

/* The backend that the client keeps. */
struct affinity {
	__u8 backend[ADDR_BYTES] ALIGNED(8);
	__u64 used; /* when it last connected, CLOCK_MONOTONIC in ns */
	__be16 port;
	__u16 pad;
	__u32 slot; /* where the backend was found; a hint */
};

/*
 * A sieve in front of the map of opt-outs. Each cgroup in the map has the bit of its depth set in
 * levels, and the bit of its id's hash set in bits. The reverse need not hold.
 */
struct optout_sieve {
	__u64 levels;
	__u64 bits[OPTOUT_BITS / 64];
};

/* A range of addresses: those that equal `net` where `mask` has ones. */
struct range {
	__u64 net[2];
	__u64 mask[2];
};

/*
 * Which addresses can be strait's. What is in a range is strait's, whatever its port. Otherwise, the
 * address of each frontend, and each address in `addresses`, has the bit of its hash set; the
 * reverse need not hold. So most other addresses cost a load.
 */
struct address_sieve {
	__u32 ranges; /* how many of `range` are valid */
	__u32 pad;
	struct range range[MAX_RANGES];
	__u64 bits[ADDRESS_BITS / 64];
};

/* The key of `addresses`. */
struct address {
	__u8 addr[ADDR_BYTES] ALIGNED(4);
};

/* Why a cgroup is not served. */
struct optout {
	__u32 level; /* its depth in the tree; the root is 0 */
	__u32 by;    /* bits: 1 the daemon, 2 an operator; for user space */
};

#endif
