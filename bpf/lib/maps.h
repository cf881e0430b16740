/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Every map: key → value, who writes, who reads. All are pinned and outlive the daemon. */
#ifndef STRAIT_MAPS_H
#define STRAIT_MAPS_H

#include "config.h"
#include "storage.h"
#include "types.h"

/*
 * Frontend (address, port, protocol) → index of its set. User space inserts and deletes, never
 * updates; connect and sendmsg read. The kernel can give a deleted element at once to the next key
 * inserted, while a program still reads it, so user space waits for a grace period in between.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, struct service_key);
	__type(value, struct service);
} services SEC(".maps");

/*
 * Index → the frontend's current set. User space writes base and count by one atomic store through
 * mmap: that store is the flip. connect and sendmsg read.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, __u32);
	__type(value, struct set);
} sets SEC(".maps");

/*
 * Slot → backend. User space writes through mmap, and only to slots that no set refers to and no
 * running program can still be using; connect and sendmsg read.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, __u32);
	__type(value, struct backend);
} backends SEC(".maps");

/*
 * Socket cookie & sockets_mask → record of one live socket. connect and sendmsg write,
 * sock_release clears; sendmsg, recvmsg and getpeername read. User space only reads.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, __u32);
	__type(value, struct record);
} sockets SEC(".maps");

/*
 * (Socket cookie, n) → flow that had no place in `sockets`, in layout 3 and older. The programs
 * read, update and delete what an older program has left here, and add nothing.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, struct more_key);
	__type(value, struct flow);
} sockets_more SEC(".maps");

/*
 * Index of a frontend → its counts, per CPU. connect and sendmsg add; user space reads, and zeroes
 * an index before reusing it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, __u32);
	__type(value, struct frontend_counter);
} frontend_counters SEC(".maps");

/* Counter of one backend of one frontend → its counts, per CPU. Written and read like the above. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, __u32);
	__type(value, struct backend_counter);
} backend_counters SEC(".maps");

/* [0]: counts of the node, per CPU. Programs add; user space reads. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

/*
 * [0]: which addresses can be strait's. User space writes through mmap; connect and sendmsg read it
 * first, and most calls to other addresses read nothing else.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct address_sieve);
} address_sieve SEC(".maps");

/*
 * Addresses outside the ranges of which every port is strait's: what has no frontend is refused.
 * User space writes; connect and sendmsg read when an address passes the sieve but is no frontend.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, struct address);
	__type(value, __u32);
} addresses SEC(".maps");

/*
 * (Frontend, client) → the backend that the client keeps. connect and sendmsg write and read; user
 * space only reads. When full, the least recently used go. The kernel can give an element to other
 * keys while a program reads it, so what is read is only searched for in the frontend's own set.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, struct affinity_key);
	__type(value, struct affinity);
} affinities SEC(".maps");

/*
 * Id of a cgroup whose processes are not served → why. User space writes; connect and sendmsg read,
 * but only after finding a frontend, and only for cgroups that `optout_levels` lets through.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, __u64);
	__type(value, struct optout);
} optouts SEC(".maps");

/* [0]: a sieve that excludes most cgroups that are not in `optouts`. Written and read like it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct optout_sieve);
} optout_levels SEC(".maps");

#endif
