/* See method.h. */
#include "agent/hotspot/method.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/hotspot/class_name.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/method_priv.h"

#define CLASS_TRIES 100

static struct method_store *stores[2]; /* the store in use and the previous one */
static int current;

static struct method_store *new_store(void)
{
	void *p = mmap(NULL, sizeof(struct method_store), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int method_init(void)
{
	for (int i = 0; i < 2; i++)
		if (!stores[i] && !(stores[i] = new_store()))
			return -ENOMEM;
	__atomic_store_n(&method_store_sig, stores[current], __ATOMIC_RELEASE);
	return 0;
}

/* Returns the store's memory to the kernel; a handler that still uses it reads zeros. */
static void method_empty(struct method_store *s)
{
	(void)syscall(SYS_madvise, s, sizeof(*s), MADV_DONTNEED);
}

void method_deinit(void)
{
	__atomic_store_n(&method_store_sig, NULL, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		if (stores[i])
			method_empty(stores[i]);
}

uint64_t method_bytes(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < 2; i++)
		if (stores[i] && stores[i]->used)
			bytes += stores[i]->used + sizeof(stores[i]->slots);
	return bytes;
}

bool method_store_full(void)
{
	struct method_store *s = stores[current];

	return s && __atomic_load_n(&s->full, __ATOMIC_RELAXED);
}

void method_forget(void)
{
	int next = 1 - current;

	if (!stores[next])
		return;
	method_empty(stores[next]);
	current = next;
	__atomic_store_n(&method_store_sig, stores[next], __ATOMIC_RELEASE);
}

const char *class_resolve(const struct method_copy *copy)
{
	static char class_name[WIRE_STRING_MAX + 1];

	if (!copy->class_len)
		return NULL;
	memcpy(class_name, copy->text, copy->class_len + 1u);
	names_normalise_class(class_name);
	return class_name;
}

bool method_resolve(const struct method_copy *copy, struct walk_method *ret)
{
	ret->class_name = class_resolve(copy);
	if (!ret->class_name)
		return false;
	ret->name = copy->text + copy->class_len + 1;
	ret->signature = ret->name + copy->name_len + 1;
	ret->file = ret->signature + copy->signature_len + 1;
	return true;
}

enum idle_sight method_idle(struct method_copy *copy)
{
	uint16_t known = __atomic_load_n(&copy->idle, __ATOMIC_RELAXED);
	uint16_t version = (uint16_t)(idle_version() << 2);

	if (!(known & 3) || (known & ~3) != version) {
		known = version |
			(uint16_t)(1 + idle_frame(copy->text, copy->text + copy->class_len + 1));
		__atomic_store_n(&copy->idle, known, __ATOMIC_RELAXED);
	}
	return (enum idle_sight)((known & 3) - 1);
}

/* A signed number is packed as 2n or -2n-1. */
static int32_t next_signed(struct unsigned5 *r)
{
	uint32_t v = unsigned5_next_sig(r);

	return (int32_t)(v >> 1 ^ (0u - (v & 1)));
}

int32_t method_line(const struct method_copy *copy, int32_t bci)
{
	const char *lines = copy->text + copy->class_len + copy->name_len + copy->signature_len +
			    copy->file_len + 4;
	struct unsigned5 r = { .at = (uint64_t)(uintptr_t)lines, .word_at = 1 };
	uint64_t end = r.at + copy->lines_len;
	int32_t at = 0, line = 0, best = -1, best_at = -1;

	while (bci >= 0 && r.at < end) {
		uint8_t byte = unsigned5_byte_sig(&r);

		if (byte == 0)
			break;
		if (byte == 0xff) {
			at += next_signed(&r);
			line += next_signed(&r);
		} else {
			at += byte >> 3;
			line += byte & 7;
		}
		/* javac sorts the entries by bytecode index, other compilers need not */
		if (at <= bci && at > best_at) {
			best = line;
			best_at = at;
		}
	}
	return best;
}

uint64_t klass_of_class(JNIEnv *env, jclass of)
{
	uint64_t klass = 0;

	for (int i = 0; of && !klass && i < CLASS_TRIES; i++) {
		/* in this call the thread waits for a pause to end, and the collector brings the
		 * reference up to date */
		(void)(*env)->IsSameObject(env, of, NULL);
		klass = klass_of_mirror_sig(of);
	}
	return klass;
}
