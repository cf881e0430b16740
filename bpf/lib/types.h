/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Every key and value: the contract with Go, whose types are generated from these.
 * Addresses are 16 bytes, IPv4 as ::ffff:a.b.c.d. Padding is explicit and zero.
 */
#ifndef STRAIT_TYPES_H
#define STRAIT_TYPES_H

#include <linux/bpf.h>

#define ADDR_BYTES 16
#define ALIGNED(n) __attribute__((aligned(n)))

/* An address, port and protocol; a frontend's is the key of `services`. */
struct service_key {
	__u8 addr[ADDR_BYTES] ALIGNED(4);
	__be16 port;
	__u8 proto; /* IPPROTO_TCP, IPPROTO_UDP */
	__u8 pad;
};

/* What a frontend has for all its life: the number of its set. */
struct service {
	__u32 index;
};

/*
 * A frontend's backends: slots base … base+count-1 of `backends`. One u64, base << 32 | count,
 * written by one store and read by one load, so that a set is seen old or new and never mixed.
 * count 0 refuses.
 */
struct set {
	__u32 count; /* little endian: the low half */
	__u32 base;
} ALIGNED(8);

/*
 * A slot: one backend of one set. The slots of a set are in the order of (addr, port).
 * Alias method: of the traffic that falls on a slot, threshold/2^32 is its own and the rest goes
 * to the slot `alias` of the same set.
 */
struct backend {
	__u8 addr[ADDR_BYTES] ALIGNED(8);
	__be16 port;
	__u16 weight_minus_1; /* for user space: the weight that the thresholds were made of */
	__u32 threshold;
	__u32 alias;	/* relative to the set's base */
	__u32 reserved; /* zero; for a number that outlives the slot (counters) */
};

/* One translation of one socket: what the application dialled and what it got. */
struct flow {
	__u8 frontend[ADDR_BYTES] ALIGNED(8);
	__u8 backend[ADDR_BYTES] ALIGNED(8);
	__be16 frontend_port;
	__be16 backend_port;
	__u8 proto;
	__u8 connected; /* by connect(), else by sendto() and the like */
	__u8 pad[2];
	__u32 slot; /* where the backend was found; a hint */
	__u32 reserved;
};

/*
 * Home of the sockets whose cookie maps here, one at a time. The owner alone reads and writes its
 * flow, under its socket's lock; the spin lock makes taking an empty home exclusive and lets user
 * space read a whole record (BPF_F_LOCK).
 */
struct record {
	__u64 cookie; /* owner, 0 = free */
	struct bpf_spin_lock lock;
	__u32 spilled; /* number of `sockets_more` entries of cookies that map here */
	struct flow flow;
};

/* The n-th record, from 0 without gaps, that a socket has outside of its home. */
struct more_key {
	__u64 cookie;
	__u32 n;
	__u32 pad;
};

#endif
