/*
 * Loads from memory that may be gone: a Method of an unloaded class, a freed code blob, a word of
 * the stack that only looks like a pointer. A hook in front of the JVM's handlers for SIGSEGV and
 * SIGBUS handles a fault of the one load instruction used here; it passes all other faults on with
 * an unchanged context (implicit null checks, safepoint polls, stack banging).
 *
 * Without the hook (-Xcheck:jni prints a warning about foreign handlers) the kernel is asked before
 * the first load from a page in each walk.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/base/arch.h"

#define GUARD_LOW  4096ull /* the first page is never mapped */
#define GUARD_HIGH ARCH_ADDRESS_MAX

/* Agent's thread. @hook: true = install the hook; false = ask the kernel before loads. May be
 * called again. 0, or -errno. */
int guard_init(bool hook);
/* Agent's thread, periodically: checks whether the hook is still the installed handler. While
 * another handler is in front of it, the kernel is asked before loads. */
void guard_refresh(void);
/* Restores the JVM's handlers if ours are still the installed ones; otherwise ours stay and pass
 * everything on. @quiescent: no walk is in progress and none will begin; if false, nothing is
 * changed. */
void guard_deinit(bool quiescent);

/* Call them before and after a walk. In between, the agent frees nothing that handlers read. */
void guard_enter_sig(void);
void guard_leave_sig(void);
/* Agent's thread. true = no walk is in progress, so what was replaced before may be freed. */
bool guard_is_quiescent(void);
/* Asks the kernel whether the page that contains @address can be read. */
bool guard_readable_sig(uint64_t address);

/* Call in the handler before the first load of a walk. false = no load may be made, because a fault
 * would end the process: the interrupted thread blocks SIGSEGV or SIGBUS. */
bool guard_begin_sig(const sigset_t *interrupted_mask);
/* true = the hook catches faults now, so guard_load_raw_sig() may be called without the checks of
 * guard_word_sig(). */
bool guard_is_hooked_sig(void);
uint64_t guard_load_raw_sig(uint64_t aligned_address);
/* The aligned word at @address & ~7; 0 when it cannot be read. */
uint64_t guard_word_sig(uint64_t address);
/* Copies bytes; bytes that cannot be read become 0. */
void guard_copy_sig(void *to, uint64_t from, size_t n);

/* Loads of a smaller value, which must not cross an aligned word. */
static inline uint64_t load64_sig(uint64_t a)
{
	return guard_word_sig(a);
}

static inline uint32_t load32_sig(uint64_t a)
{
	return (uint32_t)(guard_word_sig(a) >> ((a & 4) * 8));
}

static inline uint16_t load16_sig(uint64_t a)
{
	return (uint16_t)(guard_word_sig(a) >> ((a & 6) * 8));
}

static inline uint8_t load8_sig(uint64_t a)
{
	return (uint8_t)(guard_word_sig(a) >> ((a & 7) * 8));
}

/* A 32-bit value at any address: code is not aligned. */
static inline uint32_t load32_unaligned_sig(uint64_t a)
{
	uint64_t shift = (a & 7) * 8, low = guard_word_sig(a) >> shift;

	if ((a & 7) > 4)
		low |= guard_word_sig(a + 4) << (64 - shift);
	return (uint32_t)low;
}

/* The eight bytes of code at @a, in order. */
static inline uint64_t load_code_sig(uint64_t a)
{
	uint64_t shift = (a & 7) * 8, low = guard_word_sig(a) >> shift;

	return shift ? low | guard_word_sig(a + 8) << (64 - shift) : low;
}
