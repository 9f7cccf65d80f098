/* Finds the callers of compiled frames whose code has pushed words of its own. */
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/method_priv.h"
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/java/scopes.h"
#include "tests/unit/unit.h"

#if defined(__x86_64__)

#define CALLER	    0x70000000u /* after a call to the method under test */
#define STALE	    0x80000000u /* after a call through some stub */
#define SP	    10 /* of the stack */
#define FRAME_WORDS 6
#define PUSHED	    3 /* words, by a barrier */

struct vm_layout vm_sig;
struct code_places code_places_sig;
static uint64_t stack[64];
static uint64_t pushed_bytes; /* the result of following the code */
/* An nmethod: its Method, the table that finds its debug information, and that information. */
static struct {
	uint64_t method;
	uint32_t pcs, dependencies, scopes, compile_id, level, metadata;
	struct {
		int32_t pc, scope, object, flags;
	} descs[3];
} nmethod;

enum return_score return_score_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp,
				   const struct blob *callee)
{
	(void)h;
	(void)fp;
	(void)sp;
	(void)callee;
	return pc == CALLER ? RETURN_CALLS_US : pc == STALE ? RETURN_PLAUSIBLE : RETURN_INVALID;
}

uint64_t emulate_pushed_sig(const struct hot *h, const struct blob *b)
{
	(void)h;
	(void)b;
	return pushed_bytes;
}

#define UNUSED __attribute__((unused))
#define SAYS(result, value, name, ...) \
	result name(__VA_ARGS__)       \
	{                              \
		return value;          \
	}

SAYS(bool, false, return_fits_java_sig, UNUSED const struct hot *h, UNUSED uint64_t pc,
     UNUSED uint64_t fp, UNUSED uint64_t sp)
SAYS(bool, false, return_by_fp_sig, UNUSED struct hot *h, UNUSED uint64_t max,
     UNUSED bool java_only)
SAYS(bool, false, return_is_deopt_sig, UNUSED const struct blob *b, UNUSED uint64_t pc)
SAYS(bool, false, compiled_prologue_sig, UNUSED struct hot *h, UNUSED const struct blob *b)
SAYS(bool, false, compiled_call_stub_sig, UNUSED struct hot *h, UNUSED const struct blob *b)
SAYS(uint64_t, 0, compiled_pops_sig, UNUSED uint64_t pc)
SAYS(bool, false, emulate_dispatch_sig, UNUSED struct hot *h)
SAYS(bool, true, method_check_sig, UNUSED uint64_t method)
SAYS(bool, false, code_blob_sig, UNUSED uint64_t pc, UNUSED struct blob *ret)
SAYS(bool, true, code_is_used_sig, UNUSED uint64_t base)
SAYS(uint32_t, 0, unsigned5_next_sig, UNUSED struct unsigned5 *r)

void continuation_learn_sig(const struct hot *h)
{
	(void)h;
}

static bool mounted, called_enter_special;
static uint32_t identified;

void virtual_identity_sig(uint64_t java_thread, struct walk *w)
{
	(void)java_thread;
	(void)w;
	identified++;
}

bool virtual_is_mounted_sig(uint64_t java_thread)
{
	(void)java_thread;
	return mounted;
}

bool method_is_sig(uint64_t method, const char *class_name, const char *name)
{
	(void)method;
	return called_enter_special && strcmp(class_name, "jdk/internal/vm/Continuation") == 0 &&
	       strcmp(name, "enterSpecial") == 0;
}

void hot_push_method_sig(struct hot *h, uint64_t method, int32_t bci, uint8_t kind)
{
	(void)hot_push(h, method, bci, kind);
}

#define OFFSET(field) ((int32_t)offsetof(__typeof__(nmethod), field))

/* A thread is interrupted @at in a method whose last call is at @last_call (0 = it has none): is
 * the caller found if its address is so many words above the place where the frame would end? */
static bool is_left(int32_t at, int32_t last_call, uint64_t pushed)
{
	struct walk_frame frames[8];
	struct walk w = { .frames = frames };
	struct hot h = {
		.w = &w,
		.at = { 0x100000u + (uint64_t)at, (uint64_t)(uintptr_t)&stack[SP], 0 },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.leaf = true,
	};
	struct blob b = { .base = (uint64_t)(uintptr_t)&nmethod,
			  .code = 0x100000,
			  .end = 0x101000,
			  .frame_words = FRAME_WORDS,
			  .kind = BLOB_NMETHOD };
	uint32_t n = last_call ? 3 : 2;

	memset(&vm_sig, 0xff, sizeof(vm_sig)); /* -1: not in this JDK */
	vm_sig.nm_method = OFFSET(method);
	vm_sig.nm_pcs_offset = OFFSET(pcs);
	vm_sig.nm_dependencies_offset = OFFSET(dependencies);
	vm_sig.nm_scopes_offset = OFFSET(scopes);
	vm_sig.nm_compile_id = OFFSET(compile_id);
	vm_sig.nm_comp_level = OFFSET(level);
	vm_sig.nm_metadata_offset = OFFSET(metadata);
	nmethod.pcs = (uint32_t)OFFSET(descs);
	nmethod.dependencies = nmethod.pcs + n * sizeof(nmethod.descs[0]);
	nmethod.compile_id++;
	nmethod.descs[0].pc = -1;
	nmethod.descs[1].pc = last_call;
	nmethod.descs[n - 1].pc = INT32_MAX;
	pushed_bytes = 8 * pushed;
	return compiled_frame_sig(&h, &b) && h.at.pc == CALLER &&
	       h.at.sp == (uint64_t)(uintptr_t)&stack[SP + pushed + FRAME_WORDS];
}

static void fill(uint64_t nominal, uint64_t above)
{
	memset(stack, 0, sizeof(stack));
	stack[SP + FRAME_WORDS - 1] = nominal;
	stack[SP + PUSHED + FRAME_WORDS - 1] = above;
}

static void a_frame_ends_by_its_size(void **state)
{
	(void)state;
	fill(CALLER, STALE);
	assert_true(is_left(0x100, 0x200, 0));
}

static void a_barrier_has_pushed_what_it_will_pop(void **state)
{
	(void)state;
	fill(0, CALLER);
	assert_true(is_left(0x300, 0x200, PUSHED));
	assert_true(is_left(0x100, 0x200, PUSHED));
	fill(STALE, CALLER);
	assert_true(is_left(0x300, 0x200, PUSHED));
}

static void a_stale_address_that_may_be_one_gives_way_to_one_that_is(void **state)
{
	(void)state;
	fill(STALE, CALLER);
	assert_true(is_left(0x100, 0x200, PUSHED));
}

static void a_method_that_calls_nothing_has_barriers_too(void **state)
{
	(void)state;
	fill(STALE, CALLER);
	assert_true(is_left(0x100, 0, PUSHED));
	fill(CALLER, STALE);
	assert_true(is_left(0x100, 0, 0));
}

/* Inside a native method that made a call: does the walk end there, with the id of the virtual
 * thread? */
static bool is_root(uint8_t kind)
{
	struct walk_frame frames[8];
	struct walk w = { .frames = frames };
	struct hot h = { .w = &w,
			 .at = { 0x100100, (uint64_t)(uintptr_t)&stack[SP], 0 },
			 .thread = 1,
			 .low = (uint64_t)(uintptr_t)stack,
			 .high = (uint64_t)(uintptr_t)(stack + 64) };
	struct blob b = { .base = (uint64_t)(uintptr_t)&nmethod,
			  .code = 0x100000,
			  .end = 0x101000,
			  .frame_words = FRAME_WORDS,
			  .kind = kind };

	identified = 0;
	code_places_sig.wanted = false;
	return !compiled_frame_sig(&h, &b) && identified;
}

static void a_root_of_virtual_threads_that_is_new_is_told_by_its_name(void **state)
{
	(void)state;
	fill(CALLER, STALE);
	(void)is_left(0x100, 0x200, 0); /* the layout */
	mounted = called_enter_special = true;
	assert_true(is_root(BLOB_NATIVE_NMETHOD));
	assert_true(code_places_sig.wanted);
	assert_false(is_root(BLOB_NMETHOD));
	mounted = false;
	assert_false(is_root(BLOB_NATIVE_NMETHOD));
	mounted = true;
	called_enter_special = false;
	assert_false(is_root(BLOB_NATIVE_NMETHOD));
	assert_false(code_places_sig.wanted);
	code_places_sig.enter_special = (uint64_t)(uintptr_t)&nmethod;
	assert_true(is_root(BLOB_NATIVE_NMETHOD));
	assert_false(code_places_sig.wanted);
	code_places_sig.enter_special = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_root_of_virtual_threads_that_is_new_is_told_by_its_name),
		cmocka_unit_test(a_frame_ends_by_its_size),
		cmocka_unit_test(a_barrier_has_pushed_what_it_will_pop),
		cmocka_unit_test(a_stale_address_that_may_be_one_gives_way_to_one_that_is),
		cmocka_unit_test(a_method_that_calls_nothing_has_barriers_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else /* the stubs are only for x86-64 */

int main(void)
{
	return 77;
}

#endif
