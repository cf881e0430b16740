/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sizes and load-time constants: one object serves all kernels, without any #ifdef. */
#ifndef STRAIT_CONFIG_H
#define STRAIT_CONFIG_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

/* Sizes in the object are placeholders; the loader sets the real ones (socklb.Config). */
#define PLACEHOLDER_ENTRIES 1024

/* Steps of the binary search over one set; limits a set to 2^24 - 1 backends. */
#define SEARCH_STEPS 24

/* Number of depths of the cgroup tree at which a cgroup can opt out. */
#define MAX_LEVELS 32

/* The hash of struct optout_sieve: the top bits of id × OPTOUT_HASH. */
#define OPTOUT_HASH 0x9e3779b97f4a7c15ULL
#define OPTOUT_HASH_BITS 12

/* Whether to claim homes of records: 0 while programs of another layout do so by other rules. */
volatile const __u8 may_claim = 1;

/* The upper bits of struct record's cookie count claims. */
#define CLAIM_BITS 16
#define CLAIM (1ULL << (64 - CLAIM_BITS))

#define NS_PER_SECOND 1000000000LL

#define ECONNREFUSED 111

/* The length of an Ethernet header. */
#define ETHER_BYTES 14

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17

/* Number of entries of `sockets` - 1; the number is a power of two. */
volatile const __u32 sockets_mask = PLACEHOLDER_ENTRIES - 1;

/* The kernel has bpf_set_retval for these hooks (6.1). Otherwise refuse by loopback port 0. */
volatile const __u8 has_set_retval = 0;

/* The kernel has bpf_skc_to_mptcp_sock (5.19) and knows its own types (BTF). */
volatile const __u8 has_mptcp_sock = 0;

/* The hash of struct address_sieve: the top bits of the sum of the address's halves × SIEVE_HASH. */
#define SIEVE_HASH 0x9e3779b97f4a7c15ULL

#endif
