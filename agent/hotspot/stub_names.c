/* See stub_names.h. Loads are guarded, because a word that seems to point to the list may be
 * anything. */
#include "agent/hotspot/stub_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/guard.h"
#include "agent/hotspot/code_cache.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/stub_table.h"

#define STUB_BYTES_MAX (1u << 20)
#define CHAIN_MIN      16 /* fewest stubs that a JVM has; usually there are more than a hundred */
#define CHAIN_MAX      4096
#define SEARCHES_MAX   3
#define NEAR_LOG2      40

/* StubCodeDesc: next, group, name, begin, end; up to JDK 11 an index precedes begin. */
struct desc {
	uint64_t next, name, begin, end;
};

static struct {
	struct libjvm_image image;
	uint64_t program_break;
	uint64_t list; /* address of the JVM's variable that points to the newest entry */
	uint64_t begin_at; /* offset of begin in an entry */
	uint64_t first; /* the newest entry when the list was last read */
	uint32_t searches;
	struct stub_table tables[2];
} names;

static bool in_image(uint64_t address)
{
	return address >= names.image.low && address < names.image.high;
}

static bool in_code(uint64_t address)
{
	return address >= code_cache_sig.low && address < code_cache_sig.high;
}

static bool is_near(uint64_t at, uint64_t place)
{
	return (at ^ place) >> NEAR_LOG2 == 0;
}

/* May the address be in malloc's memory, near the libraries or the program break? Most of the
 * variables are not pointers, and a load that faults costs two microseconds. */
static bool may_be_desc(uint64_t at)
{
	return at % 8 == 0 && (is_near(at, names.image.low) || is_near(at, names.program_break)) &&
	       !in_image(at) && !in_code(at);
}

/* Reads an entry of the list; false = it cannot be one. The first entry has no end while its code
 * is being generated. */
static bool read_desc(uint64_t at, uint64_t begin_at, struct desc *ret)
{
	if (!may_be_desc(at) || !in_image(load64_sig(at + 8)))
		return false;
	*ret = (struct desc){ load64_sig(at), load64_sig(at + 16), load64_sig(at + begin_at),
			      load64_sig(at + begin_at + 8) };
	return in_image(ret->name) && in_code(ret->begin) &&
	       (!ret->end || (ret->end >= ret->begin && ret->end - ret->begin < STUB_BYTES_MAX &&
			      in_code(ret->end - 1)));
}

/* The number of entries in a list that begins at @at; 0 = one of them cannot be an entry, or the
 * list is too long. */
static uint32_t chain_length(uint64_t at, uint64_t begin_at)
{
	uint32_t n = 0;
	struct desc d;

	for (; at && n < CHAIN_MAX; n++, at = d.next)
		if (!read_desc(at, begin_at, &d))
			return 0;
	return n < CHAIN_MAX ? n : 0;
}

/* Searches for the variable that points to the list. It is zero before the JVM starts, so it is in
 * .bss. The longest list found is the right one, because other variables may point into its
 * middle. */
static void stub_names_search(void)
{
	uint64_t at = (names.image.bss_low + 7) & ~7ull;
	uint32_t longest = CHAIN_MIN - 1;

	names.program_break = (uint64_t)syscall(SYS_brk, 0L);
	for (; at + 8 <= names.image.bss_high; at += 8) {
		uint64_t first = *(const uint64_t *)(uintptr_t)at;

		if (!first || !may_be_desc(first) || !in_image(load64_sig(first + 8)))
			continue;
		for (uint64_t begin_at = 24; begin_at <= 32; begin_at += 8) {
			uint32_t n = chain_length(first, begin_at);

			if (n <= longest)
				continue;
			longest = n;
			names.list = at;
			names.begin_at = begin_at;
		}
	}
}

/* Inserts an entry in order of addresses, by insertion sort from the end. */
static void stub_names_insert(struct stub_table *t, const struct stub_name *s)
{
	uint32_t at = t->n;

	if (t->n == STUB_NAMES_MAX)
		return;
	for (; at > 0 && t->stub[at - 1].begin > s->begin; at--)
		t->stub[at] = t->stub[at - 1];
	t->stub[at] = *s;
	t->n++;
}

static void read_list(struct stub_table *t, uint64_t at)
{
	struct desc d;

	t->n = 0;
	t->code = code_cache_sig.low;
	t->image = names.image.low;
	for (uint32_t n = 0; at && n < CHAIN_MAX && read_desc(at, names.begin_at, &d);
	     n++, at = d.next)
		if (d.end > d.begin)
			stub_names_insert(t, &(struct stub_name){ (uint32_t)(d.begin - t->code),
								  (uint32_t)(d.end - t->code),
								  (uint32_t)(d.name - t->image) });
}

void stub_names_refresh(void)
{
	struct stub_table *t = &names.tables[stub_table_sig == &names.tables[0]];
	uint64_t first;

	if (!names.list && names.searches < SEARCHES_MAX && libjvm_image(&names.image)) {
		names.searches++;
		stub_names_search();
	}
	first = names.list ? *(const uint64_t *)(uintptr_t)names.list : 0;
	if (!first || first == names.first || !guard_is_quiescent())
		return; /* a handler may still be reading the table that would be overwritten */
	names.first = first;
	read_list(t, first);
	__atomic_store_n(&stub_table_sig, t, __ATOMIC_RELEASE);
}
