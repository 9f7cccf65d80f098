/* References in the form in which collectors leave them: made-up tables of ZGC, headers of
 * Shenandoah. */
#include "tests/unit/unit.h"
#include <string.h>
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/oop.h"

#define OFFSET_MASK ((1ull << 42) - 1)
#define BASE	    (OFFSET_MASK + 1)
#define GRANULES    16
#define ENTRIES	    8
#define REMAPPED(i) (0x1000ull << (i))

struct continuation_layout continuation_sig;
struct vm_layout vm_sig;

static struct forwarding {
	uint64_t start, shift, length, entries[ENTRIES];
} page = { 3ull << 21, 3, ENTRIES, { 0 } };
static uint64_t young[GRANULES], old[GRANULES], good, bad, shift;

/* ZHash */
static uint32_t hash(uint32_t key)
{
	key = ~key + (key << 15);
	key ^= key >> 12;
	key += key << 2;
	key ^= key >> 4;
	key *= 2057;
	return key ^ key >> 16;
}

static void forward(uint64_t from, uint64_t to)
{
	uint64_t index = (from - page.start) >> page.shift, at = hash((uint32_t)index);

	while (page.entries[at % ENTRIES])
		at++;
	page.entries[at % ENTRIES] = index << 46 | to << 1 | 1;
}

static uint64_t colour(uint64_t offset, unsigned index)
{
	return (BASE | offset) << (13 + index) | REMAPPED(index);
}

static uint64_t loaded(uint64_t value)
{
	static uint64_t field;
	static const sigset_t nothing_blocked;

	field = value;
	assert_true(guard_begin_sig(&nothing_blocked));
	return oop_load_sig((uint64_t)(uintptr_t)&field);
}

static void begin_z(void)
{
	memset(&oop_sig, 0, sizeof(oop_sig));
	memset(&continuation_sig, 0, sizeof(continuation_sig));
	memset(page.entries, 0, sizeof(page.entries));
	memset(young, 0, sizeof(young));
	memset(old, 0, sizeof(old));
	oop_sig = (struct oop_layout){
		.tables = true,
		.good = &good,
		.offset_mask = OFFSET_MASK,
		.maps = { (uint64_t)(uintptr_t)young, (uint64_t)(uintptr_t)old },
		.granules = GRANULES,
		.start = offsetof(struct forwarding, start),
		.shift = offsetof(struct forwarding, shift),
		.length = offsetof(struct forwarding, length),
		.entries = offsetof(struct forwarding, entries),
	};
}

static void begin_generational(unsigned now)
{
	begin_z();
	oop_sig.generational = true;
	good = REMAPPED(now);
	bad = 0xf000 & ~good;
	shift = 13 + now;
	continuation_sig.z_shift = &shift;
	continuation_sig.z_bad_mask = &bad;
}

static void a_good_colour_is_an_address(void **state)
{
	(void)state;
	begin_generational(2);
	assert_int_equal(loaded(colour(0x1230, 2)), BASE | 0x1230);
	assert_int_equal(loaded(0x2010), 0); /* null, with colours */
}

static void a_bad_colour_is_looked_up_in_the_generation_that_moved(void **state)
{
	uint64_t from = page.start + 0x40;

	(void)state;
	begin_generational(1); /* of the young generation, in the phase other than 0 and 2 */
	young[3] = (uint64_t)(uintptr_t)&page;
	forward(from, 0x5550);
	assert_int_equal(loaded(colour(from, 0)), BASE | 0x5550);
	assert_int_equal(loaded(colour(from + 8, 0)), BASE | (from + 8)); /* not moved yet */
	/* only the object of the old generation has moved */
	assert_int_equal(loaded(colour(from, 3)), BASE | from);
	old[3] = young[3];
	young[3] = 0;
	assert_int_equal(loaded(colour(from, 3)), BASE | 0x5550);
	assert_int_equal(loaded(colour(from, 0)), BASE | from);
	assert_int_equal(loaded(colour(from, 2)), BASE | 0x5550); /* both */
}

/* Two pages that were at one address one after the other; both generations began to move objects
 * since the reference was written. */
static void an_address_with_two_tables_is_looked_up_in_the_right_one(void **state)
{
	static struct forwarding of_old = { 3ull << 21, 3, ENTRIES, { 0 } };
	uint64_t from = page.start + 0x40, both = 0x30;

	(void)state;
	begin_generational(1);
	young[3] = (uint64_t)(uintptr_t)&page;
	old[3] = (uint64_t)(uintptr_t)&of_old;
	forward(from, 0x5550);
	memcpy(of_old.entries, page.entries, sizeof(of_old.entries));
	for (int i = 0; i < ENTRIES; i++) /* the old objects moved elsewhere */
		if (of_old.entries[i])
			of_old.entries[i] ^= (0x5550ull ^ 0x7770) << 1;
	assert_int_equal(loaded(colour(from, 2)), BASE | 0x5550);
	assert_int_equal(loaded(colour(from, 2) | both), BASE | 0x7770);
	assert_int_equal(loaded(colour(from, 0) | both), BASE | 0x5550); /* not of the old one */
	/* the page of the young generation has not moved this object yet */
	memset(page.entries, 0, sizeof(page.entries));
	assert_int_equal(loaded(colour(from, 2)), BASE | from);
}

static void without_tables_a_bad_colour_is_unreadable(void **state)
{
	static const sigset_t nothing_blocked;
	uint64_t field = colour(0x40, 0);

	(void)state;
	begin_generational(1);
	oop_sig.tables = false;
	assert_int_equal(loaded(field), 0);
	assert_true(guard_begin_sig(&nothing_blocked));
	assert_true(oop_is_unreadable_sig((uint64_t)(uintptr_t)&field));
	assert_false(oop_is_good_sig((uint64_t)(uintptr_t)&field));
}

/* Objects that collide in the table, a table full of other objects, and memory that is not a
 * table. */
static void a_search_ends(void **state)
{
	(void)state;
	begin_generational(1);
	young[3] = (uint64_t)(uintptr_t)&page;
	for (uint64_t i = 0; i < ENTRIES; i++)
		forward(page.start + 8 * i, 0x7000 + 8 * i);
	for (uint64_t i = 0; i < ENTRIES; i++)
		assert_int_equal(loaded(colour(page.start + 8 * i, 0)), BASE | (0x7000 + 8 * i));
	assert_int_equal(loaded(colour(page.start + 800, 0)), BASE | (page.start + 800));
	page.length = 7;
	assert_int_equal(loaded(colour(page.start, 0)), BASE | page.start);
	page.length = ENTRIES;
	young[3] = 8; /* nothing is mapped there */
	assert_int_equal(loaded(colour(page.start, 0)), BASE | page.start);
	assert_int_equal(loaded(colour((uint64_t)GRANULES << 21, 0)),
			 BASE | (uint64_t)GRANULES << 21);
}

/* The colours marked0, marked1 and remapped: the good colour is one of them. */
static void the_older_zgc_is_followed_but_for_what_was_remapped_before_marking(void **state)
{
	const uint64_t marked0 = BASE, marked1 = 2 * BASE, remapped = 4 * BASE;
	uint64_t from = page.start + 0x40;

	(void)state;
	begin_z();
	oop_sig.remapped = remapped;
	young[3] = (uint64_t)(uintptr_t)&page;
	forward(from, 0x5550);
	good = remapped; /* objects are moving */
	assert_int_equal(loaded(marked0 | from), remapped | 0x5550);
	assert_int_equal(loaded(remapped | from), remapped | from);
	good = marked1; /* during marking: the new addresses of the last cycle */
	assert_int_equal(loaded(marked0 | from), marked1 | 0x5550);
	assert_int_equal(loaded(remapped | from), marked1 | from);
	assert_int_equal(loaded(marked1 | from), marked1 | from);
	assert_int_equal(loaded(0), 0);
	/* the first object of the heap is at the offset 0 */
	forward(from + 8, 0);
	assert_int_equal(loaded(marked0 | (from + 8)), marked1);
	assert_int_equal(loaded(remapped), marked1);
	assert_int_equal(loaded(marked1), marked1);
}

static void shenandoah_leaves_the_new_place_in_the_header(void **state)
{
	uint64_t here[2] = { 1, 2 }, gone[2];

	(void)state;
	memset(&oop_sig, 0, sizeof(oop_sig));
	memset(&continuation_sig, 0, sizeof(continuation_sig));
	gone[0] = (uint64_t)(uintptr_t)here | 3;
	assert_int_equal(loaded((uint64_t)(uintptr_t)gone), (uint64_t)(uintptr_t)gone);
	oop_sig.header_forwards = true;
	assert_int_equal(loaded((uint64_t)(uintptr_t)gone), (uint64_t)(uintptr_t)here);
	assert_int_equal(loaded((uint64_t)(uintptr_t)here), (uint64_t)(uintptr_t)here);
}

static void a_collection_shows(void **state)
{
	uint8_t active = 0;
	uint32_t count = 7;
	uint64_t calm;

	(void)state;
	memset(&oop_sig, 0, sizeof(oop_sig));
	assert_int_not_equal(oop_epoch_sig(), 0);
	oop_sig.active = &active;
	oop_sig.count = &count;
	calm = oop_epoch_sig();
	assert_int_not_equal(calm, 0);
	count++;
	assert_int_not_equal(oop_epoch_sig(), calm);
	active = 1;
	assert_int_equal(oop_epoch_sig(), 0);
}

/* The mirror of another class may be where this one was while a collection is in progress. */
static void a_class_is_not_read_during_a_collection(void **state)
{
	static const sigset_t nothing_blocked;
	static uint8_t symbol[] = { 1, 0, 'A' }; /* its length, and its characters */
	_Alignas(8) static uint64_t klass[2], mirror[2], handle;
	uint8_t active = 0;
	uint32_t count = 7;

	(void)state;
	memset(&oop_sig, 0, sizeof(oop_sig));
	memset(&continuation_sig, 0, sizeof(continuation_sig));
	vm_sig.mirror_klass = vm_sig.klass_name = 8;
	vm_sig.symbol_body = 2;
	klass[1] = (uint64_t)(uintptr_t)symbol;
	mirror[1] = (uint64_t)(uintptr_t)klass;
	handle = (uint64_t)(uintptr_t)mirror;
	oop_sig.active = &active;
	oop_sig.count = &count;
	assert_true(guard_begin_sig(&nothing_blocked));
	assert_int_equal(klass_of_mirror_sig(&handle), (uint64_t)(uintptr_t)klass);
	active = 1;
	assert_int_equal(klass_of_mirror_sig(&handle), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_colour_is_an_address),
		cmocka_unit_test(a_bad_colour_is_looked_up_in_the_generation_that_moved),
		cmocka_unit_test(an_address_with_two_tables_is_looked_up_in_the_right_one),
		cmocka_unit_test(without_tables_a_bad_colour_is_unreadable),
		cmocka_unit_test(a_search_ends),
		cmocka_unit_test(
			the_older_zgc_is_followed_but_for_what_was_remapped_before_marking),
		cmocka_unit_test(shenandoah_leaves_the_new_place_in_the_header),
		cmocka_unit_test(a_collection_shows),
		cmocka_unit_test(a_class_is_not_read_during_a_collection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
