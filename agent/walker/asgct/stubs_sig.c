/* The agent's thread writes the table and the handler reads it; the count is published last. */
#include <stddef.h>
#include "agent/walker/asgct/stubs.h"

#define STUBS_MAX   2048
#define LABEL_BYTES 40

struct stub {
	uint64_t start, end;
	char name[LABEL_BYTES]; /* "[name]" */
};

static struct stub stubs[STUBS_MAX];
static uint32_t n_stubs; /* published */
static uint32_t n_loading;

void JNICALL stubs_on_code(jvmtiEnv *jvmti, const char *name, const void *address, jint length)
{
	size_t n = 0;
	struct stub *s;
	uint32_t i;

	(void)jvmti;
	/* other threads may generate code meanwhile and call this, so the index is atomic */
	if (length <= 0 || __atomic_load_n(&n_stubs, __ATOMIC_ACQUIRE))
		return;
	i = __atomic_fetch_add(&n_loading, 1, __ATOMIC_RELAXED);
	if (i >= STUBS_MAX)
		return;
	s = &stubs[i];
	s->name[0] = '[';
	for (; name[n] && n < LABEL_BYTES - 3; n++)
		s->name[n + 1] = name[n];
	s->name[n + 1] = ']';
	s->name[n + 2] = '\0';
	s->start = (uint64_t)(uintptr_t)address;
	s->end = s->start + (uint64_t)length;
}

/* Insertion sort: there are some hundred entries, nearly in order. */
static void stubs_sort(uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct stub s = stubs[i];
		uint32_t to = i;

		for (; to && stubs[to - 1].start > s.start; to--)
			stubs[to] = stubs[to - 1];
		stubs[to] = s;
	}
}

void stubs_load(jvmtiEnv *jvmti)
{
	uint32_t n;

	if (__atomic_load_n(&n_stubs, __ATOMIC_ACQUIRE))
		return;
	if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE,
					       JVMTI_EVENT_DYNAMIC_CODE_GENERATED, NULL))
		return;
	(void)(*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED,
					   NULL);
	n = __atomic_load_n(&n_loading, __ATOMIC_ACQUIRE);
	if (n > STUBS_MAX)
		n = STUBS_MAX;
	stubs_sort(n);
	__atomic_store_n(&n_stubs, n, __ATOMIC_RELEASE);
}

uint64_t stubs_bytes(void)
{
	return sizeof(stubs);
}

const char *stubs_find_sig(uint64_t pc)
{
	uint32_t low = 0, high = __atomic_load_n(&n_stubs, __ATOMIC_ACQUIRE);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (pc < stubs[middle].start)
			high = middle;
		else if (pc >= stubs[middle].end)
			low = middle + 1;
		else
			return stubs[middle].name;
	}
	return NULL;
}
