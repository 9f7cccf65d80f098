/* Trace contexts that libraries publish in thread-local storage: valid and invalid records, and
 * libraries that are loaded and unloaded while threads publish. The libraries are
 * tests/harness/publishes.c, built for each way to access such a variable. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "agent/base/guard.h"
#include "agent/trace/trace_priv.h"
#include "agent/trace/trace_tls.h"
#include "tests/unit/unit.h"

#define PAGE 4096u
#define NOW  1000000000ull
#define LOADS	    2000
#define LOADS_S_MAX 100

static const char *const libraries[] = { PUBLISHES "gnu.so", PUBLISHES "descriptor.so",
					 PUBLISHES "static.so" };
#define N_LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

typedef int64_t publish_fn(int64_t number);

static int begin(void **state)
{
	(void)state;
	assert_int_equal(guard_init(false), 0);
	trace_tls_begin(true);
	return 0;
}

static int end(void **state)
{
	(void)state;
	trace_tls_begin(false);
	guard_deinit(true);
	return 0;
}

static void look(void)
{
	static uint64_t now_ns;

	now_ns += NOW;
	(void)trace_tls_tick(now_ns);
}

/* The number whose ids a handler reads in the calling thread; 0 = it reads nothing, -1 = the two
 * ids belong to different numbers. */
static int64_t published(void)
{
	static const sigset_t nothing_blocked;
	char text[RING_CONTEXT_BYTES], expected[RING_CONTEXT_BYTES];
	unsigned long long number;
	uint32_t n;

	assert_true(guard_begin_sig(&nothing_blocked));
	n = trace_tls_read_sig(0, text);
	if (!n)
		return 0;
	if (n != 50 || sscanf(text, "%32llx", &number) != 1)
		return -1;
	snprintf(expected, sizeof(expected), "%032llx%c%016llx", number, '\0', number);
	return memcmp(text, expected, n) == 0 ? (int64_t)number : -1;
}

/* ---- records ---- */

static void ids(const uint8_t *bytes, uint32_t n, char *to)
{
	for (uint32_t i = 0; i < n; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

static void read_record(enum trace_tls_form form, const uint8_t *record, const uint8_t *trace,
			const uint8_t *span)
{
	char text[RING_CONTEXT_BYTES], expected[RING_CONTEXT_BYTES];
	uint32_t n = trace_tls_record_sig(form, (uint64_t)(uintptr_t)record, text);

	if (!trace) {
		assert_int_equal(n, 0);
		return;
	}
	ids(trace, 16, expected);
	ids(span, 8, expected + 33);
	assert_int_equal(n, 50);
	assert_memory_equal(text, expected, n);
}

static void otep_record_is_read(void **state)
{
	uint8_t raw[34], *record = raw + 2; /* an address that is a multiple of 2 is sufficient */

	(void)state;
	for (uint32_t i = 0; i < sizeof(raw); i++)
		raw[i] = (uint8_t)(0xf5 + i);
	record[24] = 1;
	read_record(TRACE_TLS_OTEP, record, record, record + 16);
	memset(record, 0, 15); /* one byte other than 0 makes an id valid */
	read_record(TRACE_TLS_OTEP, record, record, record + 16);
	record[15] = 0;
	read_record(TRACE_TLS_OTEP, record, NULL, NULL);
	record[0] = 1;
	memset(record + 16, 0, 8);
	read_record(TRACE_TLS_OTEP, record, NULL, NULL);
	record[23] = 0x80;
	read_record(TRACE_TLS_OTEP, record, record, record + 16);
	for (unsigned int valid = 0; valid < 256; valid++) {
		record[24] = (uint8_t)valid;
		read_record(TRACE_TLS_OTEP, record, valid == 1 ? record : NULL, record + 16);
	}
}

static void elastic_record_is_read(void **state)
{
	uint8_t record[37];

	(void)state;
	for (uint32_t i = 0; i < sizeof(record); i++)
		record[i] = (uint8_t)(0xf5 + i);
	memcpy(record, "\1\0\1\1\0", 5);
	read_record(TRACE_TLS_ELASTIC, record, record + 5, record + 21);
	record[0] = 0; /* no version */
	read_record(TRACE_TLS_ELASTIC, record, NULL, NULL);
	record[0] = 2; /* more fields behind */
	record[2] = 0; /* while it is being changed */
	read_record(TRACE_TLS_ELASTIC, record, NULL, NULL);
	record[2] = 0xff; /* "non-zero" */
	read_record(TRACE_TLS_ELASTIC, record, record + 5, record + 21);
	for (unsigned int present = 0; present < 256; present++) {
		record[3] = (uint8_t)present;
		read_record(TRACE_TLS_ELASTIC, record, present == 1 ? record + 5 : NULL,
			    record + 21);
	}
	record[3] = 1;
	memset(record + 21, 0, 8);
	read_record(TRACE_TLS_ELASTIC, record, NULL, NULL);
}

/* Whatever a pointer points to, the result is nothing, or two texts of hexadecimal digits. */
static void garbage_gives_digits_or_nothing(void **state)
{
	uint8_t *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char text[RING_CONTEXT_BYTES];
	uint32_t seed = 1, n, read = 0;

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	for (uint32_t i = 0; i < PAGE; i++) {
		seed = seed * 1103515245 + 12345;
		pages[i] = seed >> 28 < 12 ? (uint8_t)(seed >> 30) : (uint8_t)(seed >> 16);
	}
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	for (uint32_t at = 0; at < 2 * PAGE; at++) {
		for (int form = TRACE_TLS_OTEP; form <= TRACE_TLS_ELASTIC; form++) {
			n = trace_tls_record_sig((enum trace_tls_form)form,
						 (uint64_t)(uintptr_t)(pages + at), text);
			assert_true(n == 0 || (n == 50 && !text[32] && !text[49] &&
					       strspn(text, "0123456789abcdef") == 32 &&
					       strspn(text + 33, "0123456789abcdef") == 16));
			read += n != 0;
			assert_true(n == 0 || at < PAGE);
		}
	}
	assert_true(read > 10);
	assert_int_equal(trace_tls_record_sig(TRACE_TLS_OTEP, 8, text), 0);
	assert_int_equal(trace_tls_record_sig(TRACE_TLS_ELASTIC, ~0ull - 4, text), 0);
	munmap(pages, 2 * PAGE);
}

struct spoiler {
	uint8_t *page;
	bool ends;
};

/* Writes the record, takes its page away and brings it back, as fast as it can. */
static void *spoil(void *context)
{
	struct spoiler *s = context;
	uint32_t seed = 1;

	while (!__atomic_load_n(&s->ends, __ATOMIC_RELAXED)) {
		for (uint32_t i = 0; i < 64; i++) {
			seed = seed * 1103515245 + 12345;
			s->page[PAGE - 64 + i] = i == 24 ? 1 : (uint8_t)(seed >> 16);
		}
		if (seed >> 28 < 8)
			(void)mprotect(s->page, PAGE, PROT_NONE);
		else /* another page takes its place */
			(void)mmap(s->page, PAGE, PROT_READ,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		(void)mprotect(s->page, PAGE, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

static void record_that_goes_while_it_is_read_gives_digits_or_nothing(void **state)
{
	struct spoiler s = { .page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
	uint32_t read = 0, refused = 0;
	char text[RING_CONTEXT_BYTES];
	pthread_t thread;

	(void)state;
	assert_ptr_not_equal(s.page, MAP_FAILED);
	/* without the hook the kernel is asked once for a page, which may be gone right after */
	assert_int_equal(guard_init(true), 0);
	assert_int_equal(pthread_create(&thread, NULL, spoil, &s), 0);
	for (uint32_t i = 0; i < 20000000 && (read < 1000 || refused < 1000); i++) {
		uint32_t n = trace_tls_record_sig(TRACE_TLS_OTEP,
						  (uint64_t)(uintptr_t)(s.page + PAGE - 64), text);

		assert_true(n == 0 || (n == 50 && strspn(text, "0123456789abcdef") == 32 &&
				       strspn(text + 33, "0123456789abcdef") == 16));
		read += n != 0;
		refused += n == 0;
	}
	__atomic_store_n(&s.ends, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(read > 0 && refused > 0);
	munmap(s.page, PAGE);
}

/* ---- libraries ---- */

static void *load(const char *path, publish_fn **publish)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

	if (!handle)
		fail_msg("%s", dlerror());
	*(void **)publish = dlsym(handle, "publishes_number");
	assert_non_null(*publish);
	return handle;
}

/* A thread that carries out one step at a time. */
struct worker {
	pthread_t thread;
	pthread_barrier_t turn;
	publish_fn *publish; /* to publish in the next step; NULL = only read */
	int64_t number, seen;
	bool ends;
};

static void *work(void *context)
{
	struct worker *w = context;

	for (;;) {
		pthread_barrier_wait(&w->turn);
		if (w->ends)
			return NULL;
		if (w->publish)
			(void)w->publish(w->number);
		w->seen = published();
		pthread_barrier_wait(&w->turn);
	}
}

static int64_t step(struct worker *w, publish_fn *publish, int64_t number)
{
	w->publish = publish;
	w->number = number;
	pthread_barrier_wait(&w->turn);
	pthread_barrier_wait(&w->turn);
	return w->seen;
}

static void hire(struct worker *w)
{
	*w = (struct worker){ 0 };
	pthread_barrier_init(&w->turn, NULL, 2);
	assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
}

static void dismiss(struct worker *w)
{
	w->ends = true;
	pthread_barrier_wait(&w->turn);
	pthread_join(w->thread, NULL);
	pthread_barrier_destroy(&w->turn);
}

static void each_thread_has_its_own_ids(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_LIBRARIES; i++) {
		struct worker early, late;
		publish_fn *publish;
		void *handle;

		hire(&early);
		handle = load(libraries[i], &publish);
		assert_int_equal(step(&early, publish, 3), 0); /* not looked yet */
		look();
		assert_int_equal(trace_tls_sig.n, 1);
		assert_true(trace_sig.on & TRACE_ON_TLS);
		hire(&late);
		assert_int_equal(step(&early, NULL, 0), 3);
		assert_int_equal(step(&late, NULL, 0), 0);
		assert_int_equal(published(), 0);
		for (int64_t n = 1; n < 40; n++) {
			assert_int_equal(step(&late, publish, n), n);
			assert_int_equal(step(&early, publish, n << 30), n << 30);
			assert_int_equal(step(&late, NULL, 0), n);
		}
		assert_int_equal(step(&late, publish, 0), 0);
		assert_int_equal(step(&early, NULL, 0), 39ll << 30);
		dlclose(handle);
		/* at once, before the next scan of libraries */
		assert_int_equal(step(&early, NULL, 0), 0);
		look();
		assert_int_equal(trace_tls_sig.n, 0);
		assert_false(trace_sig.on & TRACE_ON_TLS);
		dismiss(&early);
		dismiss(&late);
	}
}

/* A thread that has not accessed the new library may still have the storage of the old one, with
 * a record that looks valid. */
static void reloaded_library_has_no_old_ids(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_LIBRARIES; i++) {
		struct worker w;
		publish_fn *publish;
		void *handle = load(libraries[i], &publish);

		hire(&w);
		look();
		assert_int_equal(step(&w, publish, 5), 5);
		dlclose(handle);
		handle = load(libraries[i], &publish); /* at the same address, usually */
		assert_int_equal(step(&w, NULL, 0), 0);
		look();
		assert_int_equal(trace_tls_sig.n, 1);
		assert_int_equal(step(&w, NULL, 0), 0);
		assert_int_equal(step(&w, publish, 7), 7);
		dlclose(handle);
		look();
		dismiss(&w);
	}
}

static void several_libraries_publish(void **state)
{
	publish_fn *publish[N_LIBRARIES];
	void *handles[N_LIBRARIES];
	struct worker w;

	(void)state;
	hire(&w);
	for (size_t i = 0; i < N_LIBRARIES; i++)
		handles[i] = load(libraries[i], &publish[i]);
	look();
	assert_int_equal(trace_tls_sig.n, N_LIBRARIES);
	for (size_t i = 0; i < N_LIBRARIES; i++) {
		assert_int_equal(step(&w, publish[i], 11 + (int64_t)i), 11 + (int64_t)i);
		assert_int_equal(step(&w, publish[i], 0), 0);
	}
	for (size_t i = 0; i < N_LIBRARIES; i++)
		dlclose(handles[i]);
	look();
	assert_int_equal(trace_tls_sig.n, 0);
	dismiss(&w);
}

static void not_wanted_is_not_read(void **state)
{
	publish_fn *publish;
	void *handle = load(libraries[0], &publish);
	struct worker w;

	(void)state;
	hire(&w);
	look();
	assert_int_equal(step(&w, publish, 5), 5);
	trace_tls_begin(true); /* again: nothing is forgotten */
	assert_int_equal(step(&w, publish, 5), 5);
	trace_tls_begin(false);
	look();
	assert_int_equal(step(&w, NULL, 0), 0);
	assert_false(trace_sig.on & TRACE_ON_TLS);
	trace_tls_begin(true);
	look();
	assert_int_equal(step(&w, publish, 9), 9);
	dlclose(handle);
	dismiss(&w);
}

static void *load_and_unload(void *loaded)
{
	for (int i = 0; i < LOADS; i++) {
		void *handle = dlopen(libraries[0], RTLD_NOW);

		if (handle)
			dlclose(handle);
	}
	__atomic_store_n((bool *)loaded, true, __ATOMIC_RELAXED);
	return NULL;
}

/* A look must not wait for the linker's lock while it keeps another thread from loading. */
static void libraries_are_loaded_while_the_agent_looks(void **state)
{
	publish_fn *publish;
	void *handle = load(libraries[1], &publish);
	bool loaded = false;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, load_and_unload, &loaded), 0);
	(void)alarm(LOADS_S_MAX);
	while (!__atomic_load_n(&loaded, __ATOMIC_RELAXED))
		look();
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)alarm(0);
	dlclose(handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(otep_record_is_read, begin, end),
		cmocka_unit_test_setup_teardown(elastic_record_is_read, begin, end),
		cmocka_unit_test_setup_teardown(garbage_gives_digits_or_nothing, begin, end),
		cmocka_unit_test_setup_teardown(
			record_that_goes_while_it_is_read_gives_digits_or_nothing, begin, end),
		cmocka_unit_test_setup_teardown(each_thread_has_its_own_ids, begin, end),
		cmocka_unit_test_setup_teardown(reloaded_library_has_no_old_ids, begin, end),
		cmocka_unit_test_setup_teardown(several_libraries_publish, begin, end),
		cmocka_unit_test_setup_teardown(not_wanted_is_not_read, begin, end),
		cmocka_unit_test_setup_teardown(libraries_are_loaded_while_the_agent_looks, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
