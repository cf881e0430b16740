/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps in the storage of sockets: apart, because objects that list them declare no other map. */
#ifndef STRAIT_STORAGE_H
#define STRAIT_STORAGE_H

#include "types.h"

/*
 * Socket → the flow of its last connect(), if its home belongs to another live socket or if it has
 * no sock_release. It is in the socket's own storage: the kernel charges it to the socket and frees
 * it with the socket. Written and read like `sockets`. User space reads it with
 * records.bpf.c or files.bpf.c.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} connected_flows SEC(".maps");

/* Socket → its flows without connect(), beside the one at home. Otherwise like connected_flows. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flows);
} unconnected_flows SEC(".maps");

#endif
