/* See old_copy.h. */
#include "agent/engine/old_copy.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "agent/engine/cpu_timer.h"

/*
 * An ELF note in each build of this library, which keeps its layout: where the handler is, and the
 * two words of its engine that are 0 when its session has ended. Distances are from the field
 * itself. A build with another layout takes another type.
 */
#define NOTE_NAME "kindling"
#define NOTE_TYPE 1

struct note {
	uint32_t name_bytes, desc_bytes, type;
	char name[12];
	int32_t to_handler;
	int32_t to_running; /* uint32_t */
	int32_t to_slots; /* a pointer */
};

static __attribute__((used)) void old_copy_note_of_this_build(void)
{
	__asm__ volatile(".pushsection .note.kindling, \"a\", %%note\n"
			 ".balign 4\n"
			 ".long 9, 12, %c0\n"
			 ".asciz \"" NOTE_NAME "\"\n"
			 ".balign 4\n"
			 ".long engine_handler_sig - .\n"
			 ".long engine + %c1 - .\n"
			 ".long engine + %c2 - .\n"
			 ".popsection\n"
			 :
			 : "i"(NOTE_TYPE), "i"(offsetof(struct engine, running)),
			   "i"(offsetof(struct engine, slots)));
}

/* What the note of the shared object with a handler says. */
struct old_copy {
	uintptr_t handler;
	const uint32_t *running; /* NULL = it has no note of ours for that handler */
	void *const *slots;
};

/* Does @bytes at @at lie in a part of the object that is mapped, with these rights? Whatever else
 * the headers of a foreign object say may be wrong, and must not be read. */
static bool old_copy_is_mapped(const struct dl_phdr_info *info, uintptr_t at, size_t bytes,
			       uint32_t rights)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t offset = at - (info->dlpi_addr + h->p_vaddr);

		if (h->p_type == PT_LOAD && (h->p_flags & rights) == rights &&
		    offset <= h->p_memsz && h->p_memsz - offset >= bytes)
			return true;
	}
	return false;
}

static uintptr_t old_copy_at(const int32_t *field)
{
	return (uintptr_t)field + (uintptr_t)(intptr_t)*field;
}

static void old_copy_read_note(struct old_copy *c, const struct dl_phdr_info *info,
			       const struct note *n)
{
	uintptr_t running = old_copy_at(&n->to_running), slots = old_copy_at(&n->to_slots);

	if (n->name_bytes != sizeof(NOTE_NAME) || n->type != NOTE_TYPE ||
	    n->desc_bytes != sizeof(*n) - offsetof(struct note, to_handler) ||
	    memcmp(n->name, NOTE_NAME, sizeof(NOTE_NAME)) != 0 ||
	    old_copy_at(&n->to_handler) != c->handler ||
	    !old_copy_is_mapped(info, running, sizeof(*c->running), PF_R | PF_W) ||
	    !old_copy_is_mapped(info, slots, sizeof(*c->slots), PF_R | PF_W))
		return;
	c->running = (const uint32_t *)running;
	c->slots = (void *const *)slots;
}

/* The linker gives notes of another alignment a segment of their own. */
static void old_copy_read_notes(struct old_copy *c, const struct dl_phdr_info *info, uintptr_t at,
				uintptr_t end)
{
	while (end - at >= sizeof(struct note) && !c->running) {
		const struct note *n = (const struct note *)at;
		uint64_t bytes = offsetof(struct note, name) +
				 ((uint64_t)n->name_bytes + 3) / 4 * 4 +
				 ((uint64_t)n->desc_bytes + 3) / 4 * 4;

		old_copy_read_note(c, info, n);
		if (bytes > end - at)
			break;
		at += bytes;
	}
}

static int old_copy_on_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct old_copy *c = data;

	(void)size;
	if (!old_copy_is_mapped(info, c->handler, 1, PF_X))
		return 0;
	for (int i = 0; i < info->dlpi_phnum && !c->running; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + h->p_vaddr;

		if (h->p_type == PT_NOTE && h->p_align <= 4 && begin % 4 == 0 &&
		    old_copy_is_mapped(info, begin, h->p_memsz, PF_R))
			old_copy_read_notes(c, info, begin, begin + h->p_memsz);
	}
	return 1;
}

bool old_copy_has_ended(const struct sigaction *now)
{
	struct old_copy c = { .handler = (uintptr_t)now->sa_sigaction };

	if (!(now->sa_flags & SA_SIGINFO) || now->sa_sigaction == engine_handler_sig)
		return false;
	dl_iterate_phdr(old_copy_on_object, &c);
	return c.running && !__atomic_load_n(c.running, __ATOMIC_SEQ_CST) &&
	       !__atomic_load_n(c.slots, __ATOMIC_SEQ_CST);
}
