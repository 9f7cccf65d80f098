/*
 * See park_priv.h. A park that finds its permit returns at once and should cost nothing here. The
 * JVM keeps the permit in Parker::_counter, which VMStructs does not describe: inside the
 * JavaThread from JDK 17 on, behind JavaThread::_parker before. The agent's own thread finds the
 * place: the only word of the thread that becomes 1 with every unpark and 0 with every park. Only a
 * thread itself takes its permit, so if it sees one there, its next park returns at once.
 *
 * Several pointers of a JavaThread may lead to that word, because the objects of a thread are often
 * neighbours in malloc's heap. In other threads they are not, and the wrong pointer would lead to
 * somebody else's word there, or be NULL. The Parker contains the word, and its neighbours begin
 * before it: the pointer with the shortest way to the word is the Parker's.
 */
#include <stddef.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/events/park_priv.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/libjvm.h"

#define ROUNDS	       4
#define THREAD_MAX     8192 /* bytes of a JavaThread that are searched */
#define PARKER_MAX     512 /* bytes that are searched behind a pointer in it */
#define CANDIDATES_MAX 4096
#define NOT_POINTER    0xffffu
/* From Parker::_counter to Parker::AssociatedWith, its JavaThread; HotSpot 8 to 16, park.hpp. */
#define OWNER_BEHIND 16

struct permit_location {
	uint16_t in_thread; /* the word's offset, or the pointer's */
	uint16_t behind; /* offset behind the pointer; NOT_POINTER = the word is in the thread */
};

static struct {
	bool known;
	struct permit_location at;
} permit;

static uint64_t park_permit_address_of(uint64_t java_thread, struct permit_location p)
{
	if (p.behind == NOT_POINTER)
		return java_thread + p.in_thread;
	return *(const uint64_t *)(uintptr_t)(java_thread + p.in_thread) + p.behind;
}

bool park_has_permit(uint64_t java_thread)
{
	return __atomic_load_n(&permit.known, __ATOMIC_ACQUIRE) &&
	       *(const volatile int32_t *)(uintptr_t)park_permit_address_of(java_thread,
									    permit.at) == 1;
}

/* ---- the agent's thread ---------------------------------------------------------------------- */

/* The value at park_permit_address_of(), which here may follow a word that is no pointer; 0 = cannot
 * be read. */
static uint32_t permit_value_at(uint64_t java_thread, struct permit_location p)
{
	if (p.behind == NOT_POINTER)
		return load32_sig(java_thread + p.in_thread);
	return load32_sig(load64_sig(java_thread + p.in_thread) + p.behind);
}

/* Collects every word with the value 1, in the thread and behind its pointers. */
static uint32_t park_permit_collect(uint64_t java_thread, size_t size,
				    struct permit_location *candidates)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i + 8 <= size; i += 8) {
		uint64_t pointer = load64_sig(java_thread + i);

		for (uint32_t k = i; k < i + 8 && n < CANDIDATES_MAX; k += 4)
			if (load32_sig(java_thread + k) == 1)
				candidates[n++] =
					(struct permit_location){ (uint16_t)k, NOT_POINTER };
		if (pointer % 8 || pointer < GUARD_LOW || pointer > GUARD_HIGH ||
		    (pointer >= java_thread && pointer < java_thread + size))
			continue;
		for (uint32_t k = 0; k < PARKER_MAX && n < CANDIDATES_MAX; k += 4)
			if (load32_sig(pointer + k) == 1)
				candidates[n++] =
					(struct permit_location){ (uint16_t)i, (uint16_t)k };
	}
	return n;
}

static uint32_t park_permit_keep(uint64_t java_thread, uint32_t value,
				 struct permit_location *candidates, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (permit_value_at(java_thread, candidates[i]) == value)
			candidates[kept++] = candidates[i];
	return kept;
}

static bool park_permit_is_in_parker(uint64_t java_thread, struct permit_location p)
{
	uint64_t pointer = load64_sig(java_thread + p.in_thread);

	return load64_sig(pointer + p.behind + OWNER_BEHIND) == java_thread;
}

/* Returns the candidate whose pointer is the Parker's; NULL if there is none, or if candidates lead
 * to different words, as it is unknown then which is the permit. */
static const struct permit_location *
park_permit_choose(uint64_t java_thread, const struct permit_location *candidates, uint32_t n)
{
	const struct permit_location *best = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const struct permit_location *c = &candidates[i];

		if (park_permit_address_of(java_thread, *c) !=
		    park_permit_address_of(java_thread, candidates[0]))
			return NULL;
		if (c->behind == NOT_POINTER)
			best = c;
		else if ((!best || (best->behind != NOT_POINTER && c->behind < best->behind)) &&
			 park_permit_is_in_parker(java_thread, *c))
			best = c;
	}
	return best;
}

void park_permit_learn(JNIEnv *env, void (*unpark)(JNIEnv *env), void (*park)(JNIEnv *env))
{
	static struct permit_location candidates[CANDIDATES_MAX];
	static const sigset_t nothing_blocked;
	uint64_t thread = java_thread_of_sig(env);
	size_t size = libjvm_type_size("JavaThread");
	const struct permit_location *chosen;
	uint32_t n = 0;

	if (permit.known || !size)
		return;
	(void)guard_begin_sig(&nothing_blocked);
	for (int i = 0; i < ROUNDS; i++) {
		unpark(env);
		n = i ? park_permit_keep(thread, 1, candidates, n)
		      : park_permit_collect(thread, size < THREAD_MAX ? size : THREAD_MAX,
					    candidates);
		park(env);
		n = park_permit_keep(thread, 0, candidates, n);
	}
	chosen = n < CANDIDATES_MAX ? park_permit_choose(thread, candidates, n) : NULL;
	if (chosen) {
		permit.at = *chosen;
		__atomic_store_n(&permit.known, true, __ATOMIC_RELEASE);
	}
}
