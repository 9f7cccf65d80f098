/* The manners of hostile agents, which strangers.c lists. */
#include "tests/harness/strangers.h"

#include <string.h>
#include <unistd.h>

static void mutant(struct voice *v)
{
	v->changes = true;
	for (;;) {
		voice_define(v);
		voice_new_contexts(v);
		for (int i = 0; i < 20; i++) {
			voice_samples(v, WIRE_CPU, WIRE_EVENT_CPU, strangers_any(500));
			voice_samples(v, WIRE_WALL, WIRE_EVENT_WALL, strangers_any(500));
			voice_locks(v, strangers_any(200), strangers_any(16));
			voice_times_off(v, strangers_any(500));
			voice_allocations(v, strangers_any(200));
			voice_states(v);
			voice_account(v);
		}
		voice_reset(v);
	}
}

static void resets(struct voice *v)
{
	for (;; voice_reset(v)) {
		voice_define(v);
		voice_locks(v, 2 * IDS, WIRE_LOCK_OPEN);
		voice_account(v);
	}
}

static void contexts(struct voice *v)
{
	for (voice_define(v);; v->epoch++) {
		voice_new_contexts(v);
		voice_samples(v, WIRE_CPU, WIRE_EVENT_CPU, CONTEXTS);
		voice_locks(v, CONTEXTS, 0);
		voice_times_off(v, CONTEXTS);
		voice_account(v);
	}
}

static void offcpu(struct voice *v)
{
	for (voice_define(v);; voice_account(v)) {
		voice_times_off(v, 4000);
		voice_states(v);
	}
}

static void deep(struct voice *v)
{
	voice_define(v);
	for (;; voice_account(v)) {
		voice_begin(v, WIRE_NODE);
		for (uint32_t i = 0; i < DEPTH; i++)
			VOICE_PUT(v, WIRE_NODE,
				  wire_put_node(&v->w, &(struct wire_node){
							       .id = IDS + 1 + i,
							       .parent = i ? IDS + i : 0,
							       .kind = WIRE_KIND_STUB,
							       .ref = 1 + strangers_any(IDS) }));
		voice_say(v);
		voice_begin(v, WIRE_CPU);
		for (uint32_t i = 0; i < DEPTH; i++)
			VOICE_PUT(v, WIRE_CPU,
				  wire_put_sample(&v->w,
						  &(struct wire_sample){
							  strangers_now_ns(), 1 + strangers_any(50),
							  IDS + 1 + strangers_any(DEPTH), 1, 0 }));
		voice_say(v);
		v->ledger.accounts[WIRE_EVENT_CPU].taken =
			v->ledger.accounts[WIRE_EVENT_CPU].written += DEPTH;
		v->ledger.accounts[WIRE_EVENT_CPU].taken_weight =
			v->ledger.accounts[WIRE_EVENT_CPU].written_weight += DEPTH;
	}
}

static void files(struct voice *v)
{
	static const char *const paths[] = {
		"/tmp/w/fifo",
		"/tmp/w/circle",
		"/tmp/w/socket",
		"/tmp/w/long/../long/../long",
		"/dev/null",
		"/dev/zero",
		"/dev/random",
		"/dev/tty",
		"/proc/self/mem",
		"/proc/1/root/etc",
		"/proc/self/environ",
		"/proc/kmsg",
		"/proc/self/fd/0",
		"/tmp/w/empty",
		"/tmp/w/hole",
		"/tmp/w/gone (deleted)",
		"",
		"//",
		"/tmp/w/elf",
		"[vdso]",
		"[stack]",
		"/memfd:x (deleted)",
	};
	const uint32_t n = sizeof(paths) / sizeof(paths[0]);

	for (;; voice_reset(v)) {
		voice_define(v);
		voice_begin(v, WIRE_STRING);
		for (uint32_t i = 0; i < n; i++)
			VOICE_PUT(v, WIRE_STRING,
				  wire_put_string(&v->w, &(struct wire_string){
								 IDS + 1 + i,
								 { paths[i],
								   (uint32_t)strlen(paths[i]) } }));
		voice_say(v);
		voice_begin(v, WIRE_MAPPING);
		for (uint32_t i = 0; i < IDS; i++)
			VOICE_PUT(v, WIRE_MAPPING,
				  wire_put_mapping(
					  &v->w,
					  &(struct wire_mapping){
						  .id = 1 + i,
						  .start = 0x1000ull * (i + 1),
						  .end = 0x1000ull * (i + 2),
						  .file_offset = strangers_any(~0u),
						  .path_id = IDS + 1 + i % n,
						  .build_id = { (uint8_t)i,
								(uint8_t)strangers_any(256) },
						  .build_id_len = (uint8_t)strangers_any(21) }));
		voice_say(v);
		voice_begin(v, WIRE_NODE);
		for (uint32_t i = 0; i < IDS; i++)
			VOICE_PUT(v, WIRE_NODE,
				  wire_put_node(&v->w, &(struct wire_node){
							       .id = IDS + 1 + i,
							       .parent = 0,
							       .kind = WIRE_KIND_NATIVE,
							       .ref = 1 + strangers_any(IDS),
							       .offset = strangers_any(~0u) }));
		voice_say(v);
		voice_samples(v, WIRE_CPU, WIRE_EVENT_CPU, IDS);
		voice_account(v);
		strangers_pause_ms(20);
	}
}

/* Names that mean something to whoever shows them. */
static const struct wire_str odd_names[] = {
#define ODD(text) { text, sizeof(text) - 1 }
	ODD("</script><script>alert(1)</script>"),
	ODD("<!--<script>"),
	ODD("]]>&amp;\"'`${1}"),
	ODD("\x1b[2J\x1b]0;owned\a"),
	ODD("../../../../etc/passwd"),
	ODD("com.acme.A;B 12\nC 7"),
	ODD("%s%n%99999999d"),
	ODD("a\0b"),
	ODD("\xe2\x80\xae\xe2\x82"),
	ODD("__proto__"),
	ODD(""),
#undef ODD
};
#define ODD_NAMES (sizeof(odd_names) / sizeof(odd_names[0]))

/* The last one is so long that whoever makes a sentence of it has to cut it, within a character. */
static struct wire_str odd_name(uint32_t i)
{
	static char longest[WIRE_STRING_MAX];

	if (i % (ODD_NAMES + 1) < ODD_NAMES)
		return odd_names[i % (ODD_NAMES + 1)];
	for (size_t k = 0; k + 1 < sizeof(longest); k += 2)
		memcpy(longest + k, "\xc3\xa9", 2);
	longest[0] = 'L';
	memmove(longest + 1, longest + 2, sizeof(longest) - 2);
	return (struct wire_str){ longest, sizeof(longest) - 1 };
}

static uint64_t odd_number(void)
{
	static const uint64_t numbers[] = {
		0,	    1,	  1000000000000000000u, 1ull << 31, (1ull << 32) - 1, 1ull << 62,
		1ull << 63, ~0ull
	};
	uint32_t i = strangers_any(12);

	return i < 8 ? numbers[i] : strangers_now_ns() - strangers_any(1u << 30);
}

static void define_odd(struct voice *v)
{
	voice_begin(v, WIRE_STRING);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(v, WIRE_STRING,
			  wire_put_string(&v->w, &(struct wire_string){ i, odd_name(i) }));
	voice_say(v);
	voice_define_methods(v);
	voice_begin(v, WIRE_NODE);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(v, WIRE_NODE,
			  wire_put_node(&v->w,
					&(struct wire_node){ .id = i,
							     .parent = i > 1 ? strangers_any(i) : 0,
							     .kind = WIRE_KIND_C2,
							     .ref = i,
							     .line = (int32_t)odd_number() }));
	voice_say(v);
	voice_begin(v, WIRE_THREAD);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(
			v, WIRE_THREAD,
			wire_put_thread(&v->w, &(struct wire_thread){ i, strangers_any(8),
								      odd_number(), odd_name(i) }));
	voice_say(v);
}

static void states_odd(struct voice *v)
{
	voice_begin(v, WIRE_STATE);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(v, WIRE_STATE,
			  wire_put_state(&v->w,
					 &(struct wire_state){
						 odd_number(),
						 i,
						 (uint8_t)strangers_any(WIRE_STATE_COUNT),
						 (uint8_t)strangers_any(WIRE_OFFCPU_STATUS_COUNT),
						 odd_number(),
						 (uint32_t)odd_number(),
						 { (uint32_t)odd_number(), (uint32_t)odd_number(),
						   (uint32_t)odd_number() },
					 }));
	voice_say(v);
	voice_begin(v, WIRE_PAUSE);
	for (uint32_t i = 1; i <= IDS; i++) {
		uint64_t length_ns = odd_number();

		VOICE_PUT(v, WIRE_PAUSE,
			  wire_put_pause(&v->w, &(struct wire_pause){ odd_number(), length_ns / 2,
								      length_ns, odd_number(),
								      (uint8_t)strangers_any(3),
								      1 + strangers_any(IDS) }));
	}
	voice_say(v);
}

static void locks_odd(struct voice *v, uint32_t n)
{
	struct wire_accounts *a = &v->ledger.accounts[WIRE_EVENT_LOCK];

	voice_begin(v, WIRE_LOCK);
	for (uint32_t i = 0; i < n; i++) {
		const struct wire_lock l = { .begin_ns = odd_number(),
					     /* absurd sums of weights would end the stream */
					     .duration_ns = strangers_any(1u << 31),
					     .tid = 1 + strangers_any(IDS),
					     .wait = (uint8_t)strangers_any(WIRE_WAIT_COUNT),
					     .flags = (uint8_t)strangers_any(16),
					     .class_id = 1 + strangers_any(IDS),
					     .identity = (uint32_t)odd_number(),
					     .owner_tid = 1 + strangers_any(IDS),
					     .node = strangers_any(IDS),
					     .owner_node = strangers_any(IDS),
					     .waits = 1 + strangers_any(~0u) };

		VOICE_PUT(v, WIRE_LOCK, wire_put_lock(&v->w, &l));
		if (l.flags & (WIRE_LOCK_OPEN | WIRE_LOCK_CLOSED))
			continue;
		a->taken = ++a->written;
		a->taken_weight = a->written_weight += l.duration_ns;
	}
	voice_say(v);
}

static void odd(struct voice *v)
{
	for (;; voice_reset(v)) {
		define_odd(v);
		voice_new_contexts(v);
		for (int i = 0; i < 20; i++) {
			voice_samples(v, WIRE_CPU, WIRE_EVENT_CPU, 300);
			voice_locks(v, 200, strangers_any(16));
			voice_times_off(v, 300);
			locks_odd(v, 100);
			states_odd(v);
			voice_account(v);
			strangers_pause_ms(50);
		}
	}
}

static void talks(struct voice *v)
{
	for (;;) {
		voice_complain(v, WIRE_FAULT);
		voice_complain(v, WIRE_NOTE);
	}
}

static void half(struct voice *v)
{
	voice_define(v);
	voice_begin(v, WIRE_CPU);
	(void)wire_put_sample(&v->w, &(struct wire_sample){ strangers_now_ns(), 1, 1, 1, 0 });
	(void)wire_end(&v->w, v->sequence);
	(void)!write(v->fd, v->buf, WIRE_HDR_SIZE + 1);
	strangers_pause_ms(3600 * 1000);
}

static void ends(struct voice *v)
{
	voice_define(v);
	voice_samples(v, WIRE_CPU, WIRE_EVENT_CPU, 1000);
	voice_account(v);
	strangers_pause_ms(1000);
	execl("/proc/self/exe", "java", "churn", (char *)NULL);
}
const struct strangers_manner strangers_manners[] = {
	{ "mutant", mutant, 4 }, { "resets", resets, 2 }, { "contexts", contexts, 2 },
	{ "offcpu", offcpu, 2 }, { "deep", deep, 2 },	  { "files", files, 2 },
	{ "odd", odd, 1 },	 { "talks", talks, 1 },	  { "half", half, 1 },
	{ "ends", ends, 2 },
};
const size_t strangers_n_manners = sizeof(strangers_manners) / sizeof(strangers_manners[0]);
