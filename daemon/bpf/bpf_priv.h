/* What every BPF program of the daemon has to ask and to say. Inside the bpf room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The kernel counts pids from the first namespace: elsewhere they mean other processes to us. */
bool bpf_pids_are_ours(void);
/* A sentence about @error at @step into @why; returns -@error. */
int bpf_refuse(int error, const char *step, char *why, size_t why_size);
/* libbpf's own words go to the debug log. */
void bpf_log_quietly(void);
