/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Cut by hand from include/uapi/linux/bpf.h of Linux 6.1 (see ../VERSION): only what our programs
 * use. The layouts are kernel ABI and the same since Linux 5.10.
 */
#ifndef __LINUX_BPF_H__
#define __LINUX_BPF_H__

typedef unsigned char __u8;
typedef signed short __s16;
typedef unsigned short __u16;
typedef signed int __s32;
typedef unsigned int __u32;
typedef signed long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u64 __be64;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
};

/* bpf_map_update_elem flags */
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

/* map_create flags */
enum {
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_MMAPABLE = 1U << 10,
};

/* bpf_sock.state of a connected socket, TCP and UDP alike */
enum {
	BPF_TCP_ESTABLISHED = 1,
};

/* bpf_sk_storage_get flags */
enum {
	BPF_SK_STORAGE_GET_F_CREATE = 1U << 0,
};

struct bpf_spin_lock {
	__u32 val;
};

struct bpf_sock {
	__u32 bound_dev_if;
	__u32 family;
	__u32 type;
	__u32 protocol;
	__u32 mark;
	__u32 priority;
	__u32 src_ip4;
	__u32 src_ip6[4];
	__u32 src_port; /* host byte order */
	__be16 dst_port;
	__u16 : 16;
	__u32 dst_ip4;
	__u32 dst_ip6[4];
	__u32 state;
	__s32 rx_queue_mapping;
};

/* Addresses and the port are in network byte order; the port is in the low 16 bits. */
struct bpf_sock_addr {
	__u32 user_family;    /* 4-byte read */
	__u32 user_ip4;	      /* 1,2,4-byte read, 4-byte write */
	__u32 user_ip6[4];    /* 1,2,4,8-byte read, 4,8-byte write */
	__u32 user_port;      /* 1,2,4-byte read, 4-byte write */
	__u32 family;	      /* 4-byte read */
	__u32 type;	      /* 4-byte read */
	__u32 protocol;	      /* 4-byte read */
	__u32 msg_src_ip4;    /* 1,2,4-byte read, 4-byte write */
	__u32 msg_src_ip6[4]; /* 1,2,4,8-byte read, 4,8-byte write */
	union {
		struct bpf_sock *sk;
		__u64 : 64;
	} __attribute__((aligned(8)));
};

#endif
