/*
 * The few kernel types our programs read, by hand: CO-RE finds members by name in the running kernel,
 * so only names and types matter here, and no kernel's BTF is needed to build. The integer types are
 * those that bpf_helpers.h is written with.
 */
#pragma once

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum bpf_map_type {
	BPF_MAP_TYPE_RINGBUF = 27,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
};

struct task_struct {
	struct signal_struct *signal;
};

#pragma clang attribute pop
