/* What a hostile agent says: frames that are mostly valid. */
#include "tests/harness/strangers.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ONE_OF 50u /* frames is changed */

uint64_t strangers_seed;

uint32_t strangers_any(uint32_t below)
{
	strangers_seed = strangers_seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(strangers_seed >> 33) % below;
}

uint64_t strangers_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void strangers_pause_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}
void voice_begin(struct voice *v, enum wire_type type)
{
	v->w.buf = v->buf;
	wire_begin(&v->w, v->buf, type);
}

void voice_say(struct voice *v)
{
	size_t len = wire_end(&v->w, v->sequence++), at = 0;

	if (v->changes && len > WIRE_HDR_SIZE && strangers_any(ONE_OF) == 0)
		for (uint32_t i = 0; i < 1 + strangers_any(3); i++)
			v->buf[WIRE_HDR_SIZE + strangers_any((uint32_t)len - WIRE_HDR_SIZE)] ^=
				(uint8_t)(1u << strangers_any(8));
	while (at < len) {
		ssize_t n = write(v->fd, v->buf + at, len - at);

		if (n <= 0)
			_exit(0);
		at += (size_t)n;
	}
}

void voice_greet(struct voice *v)
{
	const struct wire_hello h = { .protocol = WIRE_PROTOCOL,
				      .agent_version = { "0.1.0", 5 },
				      .jvm_name = { "\xff\x1b[31m<b>&\"", 10 },
				      .ns_pid = (uint64_t)getpid(),
				      .interval_ns = 10000000,
				      .mono_ns = strangers_now_ns(),
				      .real_ns = 1,
				      .session = v->session,
				      .secret = { (const char *)v->secret, sizeof(v->secret) } };
	bool changes = v->changes;

	v->changes = false;
	v->sequence = 1;
	voice_begin(v, WIRE_HELLO);
	(void)wire_put_hello(&v->w, &h);
	voice_say(v);
	v->changes = changes;
}

void voice_define_methods(struct voice *v)
{
	voice_begin(v, WIRE_METHOD);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(v, WIRE_METHOD,
			  wire_put_method(&v->w, &(struct wire_method){
							 i, i, 1 + strangers_any(IDS), 1, i }));
	voice_say(v);
}

void voice_define(struct voice *v)
{
	static char text[2048];

	voice_begin(v, WIRE_STRING);
	for (uint32_t i = 1; i <= IDS; i++) {
		int n = snprintf(text, sizeof(text), "com/tenant/%s%u_%u%0*d",
				 i % 7 ? "C" : "\xe2\x82", v->epoch, i, (int)strangers_any(40), 0);

		VOICE_PUT(
			v, WIRE_STRING,
			wire_put_string(&v->w, &(struct wire_string){ i, { text, (uint32_t)n } }));
	}
	voice_say(v);
	voice_define_methods(v);
	voice_begin(v, WIRE_NODE);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(v, WIRE_NODE,
			  wire_put_node(&v->w, &(struct wire_node){
						       .id = i,
						       .parent = i > 1 ? strangers_any(i) : 0,
						       .kind = WIRE_KIND_C2,
						       .ref = i,
						       .line = (int32_t)strangers_any(9999) }));
	voice_say(v);
	voice_begin(v, WIRE_THREAD);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(v, WIRE_THREAD,
			  wire_put_thread(&v->w,
					  &(struct wire_thread){
						  i, strangers_any(8), i, { "a thread", 8 } }));
	voice_say(v);
}

void voice_samples(struct voice *v, enum wire_type type, enum wire_event event, uint32_t n)
{
	voice_begin(v, type);
	for (uint32_t i = 0; i < n; i++)
		VOICE_PUT(v, type,
			  wire_put_sample(&v->w, &(struct wire_sample){ strangers_now_ns(),
									1 + strangers_any(IDS),
									strangers_any(IDS), 1000,
									strangers_any(CONTEXTS) }));
	voice_say(v);
	v->ledger.accounts[event].taken = v->ledger.accounts[event].written += n;
	v->ledger.accounts[event].taken_weight = v->ledger.accounts[event].written_weight +=
		1000ull * n;
}

void voice_times_off(struct voice *v, uint32_t n)
{
	struct wire_accounts *a = &v->ledger.accounts[WIRE_EVENT_OFFCPU];

	voice_begin(v, WIRE_OFFCPU);
	for (uint32_t i = 0; i < n; i++) {
		const struct wire_offcpu o = {
			.mono_ns = strangers_now_ns(),
			.tid = 1 + strangers_any(1u << 22),
			.virtual_tid =
				strangers_any(2) ? WIRE_VIRTUAL_TID + strangers_any(1u << 20) : 0,
			.node = strangers_any(IDS),
			.weight_ns = 1000000,
			.status = (uint8_t)strangers_any(WIRE_OFFCPU_STATUS_COUNT),
			.context = strangers_any(CONTEXTS)
		};

		VOICE_PUT(v, WIRE_OFFCPU, wire_put_offcpu(&v->w, &o));
	}
	voice_say(v);
	a->taken = a->written += n;
	a->taken_weight = a->written_weight += 1000000ull * n;
}

void voice_locks(struct voice *v, uint32_t n, uint32_t flags)
{
	voice_begin(v, WIRE_LOCK);
	for (uint32_t i = 0; i < n; i++) {
		const struct wire_lock l = { .begin_ns = strangers_now_ns() - 2000000,
					     .duration_ns = 1000000,
					     .tid = 1 + strangers_any(IDS),
					     .wait = (uint8_t)strangers_any(WIRE_WAIT_COUNT),
					     .flags = (uint8_t)flags,
					     .class_id = 1 + strangers_any(IDS),
					     .identity = strangers_any(1u << 30),
					     .owner_tid = 1 + strangers_any(IDS),
					     .node = strangers_any(IDS),
					     .owner_node = strangers_any(IDS),
					     .waits = 1,
					     .context = strangers_any(CONTEXTS) };

		VOICE_PUT(v, WIRE_LOCK, wire_put_lock(&v->w, &l));
	}
	voice_say(v);
	if (!(flags & WIRE_LOCK_OPEN)) {
		struct wire_accounts *a = &v->ledger.accounts[WIRE_EVENT_LOCK];

		a->taken = a->written += n;
		a->taken_weight = a->written_weight += 1000000ull * n;
	}
}

void voice_new_contexts(struct voice *v)
{
	char trace[WIRE_TRACE_MAX], span[17];

	voice_begin(v, WIRE_CONTEXT);
	for (uint32_t i = 1; i < CONTEXTS; i++) {
		int n = snprintf(trace, sizeof(trace), "%08x%08x%08x%08x%.*s", strangers_any(~0u),
				 v->epoch, i, strangers_any(~0u), (int)strangers_any(90),
				 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
		int m = snprintf(span, sizeof(span), "%08x%08x", strangers_any(~0u), i);
		const struct wire_context c = { i, { trace, (uint32_t)n }, { span, (uint32_t)m } };

		VOICE_PUT(v, WIRE_CONTEXT, wire_put_context(&v->w, &c));
	}
	voice_say(v);
}

void voice_states(struct voice *v)
{
	voice_begin(v, WIRE_STATE);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(
			v, WIRE_STATE,
			wire_put_state(&v->w,
				       &(struct wire_state){
					       strangers_now_ns(),
					       i,
					       (uint8_t)strangers_any(WIRE_STATE_COUNT),
					       (uint8_t)strangers_any(WIRE_OFFCPU_STATUS_COUNT),
					       strangers_any(1u << 30),
					       (uint32_t)strangers_any(1u << 31),
					       { (uint32_t)strangers_any(1u << 31), 0, UINT32_MAX },
				       }));
	voice_say(v);
	voice_begin(v, WIRE_VIRTUAL);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(v, WIRE_VIRTUAL,
			  wire_put_virtual(&v->w, &(struct wire_virtual){
							  strangers_now_ns(), i, i,
							  (uint8_t)strangers_any(WIRE_STATE_COUNT),
							  strangers_any(~0u), strangers_any(9) }));
	voice_say(v);
	voice_begin(v, WIRE_PAUSE);
	for (uint32_t i = 1; i <= IDS; i++)
		VOICE_PUT(v, WIRE_PAUSE,
			  wire_put_pause(&v->w,
					 &(struct wire_pause){
						 strangers_now_ns() - strangers_any(1u << 30),
						 strangers_any(1u << 29), strangers_any(1u << 30),
						 strangers_any(1u << 20), (uint8_t)strangers_any(3),
						 1 + strangers_any(IDS) }));
	voice_say(v);
}

void voice_allocations(struct voice *v, uint32_t n)
{
	struct wire_accounts *a = &v->ledger.accounts[WIRE_EVENT_ALLOC];

	voice_begin(v, WIRE_ALLOC);
	for (uint32_t i = 0; i < n; i++)
		VOICE_PUT(v, WIRE_ALLOC,
			  wire_put_alloc(&v->w, &(struct wire_alloc){
							strangers_now_ns(), 1 + strangers_any(IDS),
							strangers_any(IDS), 1 + strangers_any(IDS),
							16, 512, strangers_any(CONTEXTS) }));
	voice_say(v);
	a->taken = a->written += n;
	a->taken_weight = a->written_weight += 512ull * n;
}

void voice_account(struct voice *v)
{
	voice_begin(v, WIRE_LEDGER);
	(void)wire_put_ledger(&v->w, &v->ledger);
	voice_say(v);
}

void voice_reset(struct voice *v)
{
	voice_begin(v, WIRE_RESET);
	voice_say(v);
	v->epoch++;
}

void voice_complain(struct voice *v, enum wire_type type)
{
	static char text[WIRE_STRING_MAX];

	memset(text, 'x', sizeof(text));
	memcpy(text, "\x1b]0;owned\a\n<3>kindling: \xf0\x9f", 24);
	voice_begin(v, type);
	(void)wire_put_fault(&v->w,
			     &(struct wire_fault){ strangers_any(200),
						   { "step\n", 5 },
						   { text, 1 + strangers_any(sizeof(text)) } });
	voice_say(v);
}
