/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Every map: key → value, who writes, who reads. All are pinned and outlive the daemon. */
#ifndef STRAIT_MAPS_H
#define STRAIT_MAPS_H

#include "config.h"
#include "types.h"

/*
 * Frontend (address, port, protocol) → index of its set. User space inserts and deletes, never
 * updates; connect and sendmsg read. A deleted element may be handed at once to the next key that
 * is inserted, while a program still reads it, so user space lets a grace period pass between.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, struct service_key);
	__type(value, struct service);
} services SEC(".maps");

/*
 * Index → the frontend's present set. User space writes, each by one atomic store through mmap:
 * that store is the flip. connect and sendmsg read.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, __u32);
	__type(value, struct set);
} sets SEC(".maps");

/*
 * Slot → backend. User space writes through mmap, only slots that no set holds and that no running
 * program can still have in hand; connect and sendmsg read.
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
 * sock_release clears; sendmsg, recvmsg and getpeername read. User space only looks.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, __u32);
	__type(value, struct record);
} sockets SEC(".maps");

/*
 * (Socket cookie, n) → flow that has no place in `sockets`: its home belongs to another live
 * socket, or the socket sends to several frontends. Written and read as `sockets`. Full: traffic
 * goes on, replies show the backend.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACEHOLDER_ENTRIES);
	__type(key, struct more_key);
	__type(value, struct flow);
} sockets_more SEC(".maps");

#endif
