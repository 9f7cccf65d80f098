/* See writer.h: pending frames, the pipe, epochs of ids, and what is not a sample. */
#include "agent/output/writer_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/events.h"
#include "agent/engine/cpu_timer.h"
#include "agent/events/open.h"
#include "agent/events/sources.h"
#include "agent/output/ledger.h"
#include "agent/output/thread_states.h"
#include "agent/output/threads.h"

#define AGENT_BYTES_MAX (3u << 20) /* total memory of the agent */
/* of the dictionary, even if other parts of the agent need all of AGENT_BYTES_MAX */
#define DICT_BYTES_MIN (1u << 20)

static const enum wire_type pending_type[PENDING_COUNT] = {
	WIRE_STRING,  WIRE_MAPPING, WIRE_METHOD, WIRE_NODE,   WIRE_CONTEXT, WIRE_THREAD, WIRE_STATE,
	WIRE_VIRTUAL, WIRE_PAUSE,   WIRE_CPU,	 WIRE_OFFCPU, WIRE_LOCK,    WIRE_ALLOC,	 WIRE_WALL,
};

const enum pending writer_pending_of[WIRE_EVENT_COUNT] = {
	[WIRE_EVENT_CPU] = PENDING_CPU,	      [WIRE_EVENT_LOCK] = PENDING_LOCK,
	[WIRE_EVENT_ALLOC] = PENDING_ALLOC,   [WIRE_EVENT_WALL] = PENDING_WALL,
	[WIRE_EVENT_OFFCPU] = PENDING_OFFCPU,
};

struct writer writer;

struct wire_str wire_text(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

static void writer_begin_frames(void)
{
	for (int i = 0; i < PENDING_COUNT; i++)
		wire_begin(&writer.frames[i], writer.bytes[i], pending_type[i]);
	memset(writer.waiting, 0, sizeof(writer.waiting));
	writer.begun = true;
	writer.batch++;
}

static void writer_forget_definitions(void)
{
	dict_clear(&writer.strings);
	dict_clear(&writer.methods);
	dict_clear(&writer.mappings);
	dict_clear(&writer.nodes);
	writer_contexts_forget();
	threads_forget();
	writer.epoch++;
}

/* fstat by a raw system call: the name of the libc function differs between libcs */
static bool writer_fd_is_fifo(int fd, uint64_t *ret_device, uint64_t *ret_inode)
{
	struct stat st;

	if (syscall(SYS_fstat, fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return false;
	*ret_device = st.st_dev;
	*ret_inode = st.st_ino;
	return true;
}

uint64_t writer_dictionary_bytes(void)
{
	return dict_bytes(&writer.strings) + dict_bytes(&writer.methods) +
	       dict_bytes(&writer.mappings) + dict_bytes(&writer.nodes);
}

uint64_t writer_bytes(void)
{
	return agent.ring.size + engine_bytes() + walker_bytes() + threads_bytes() +
	       sources_bytes() + thread_states_bytes() + writer_dictionary_bytes() +
	       writer_contexts_bytes() + sizeof(writer);
}

/* Writes @frames complete frames, of WIRE_FRAME_MAX bytes at most together. */
static enum writer_result writer_write(const uint8_t *bytes, uint32_t len, uint32_t frames)
{
	uint64_t device, inode;
	long n;

	/* the application may have closed our descriptor and use its number now */
	if (!writer_fd_is_fifo(writer.fd, &device, &inode) || device != writer.device ||
	    inode != writer.inode) {
		writer.gone = true;
		return WRITER_GONE;
	}
	do
		n = write(writer.fd, bytes, len);
	while (n < 0 && errno == EINTR);
	if (n == (long)len) {
		writer.sequence += frames;
		writer.full_since_ns = 0;
		ledger.pipe_bytes += len;
		return WRITER_OK;
	}
	if (n < 0 && errno == EAGAIN) {
		if (!writer.full_since_ns)
			writer.full_since_ns = mono_ns();
		return WRITER_FULL;
	}
	writer.gone = true;
	return WRITER_GONE;
}

static enum writer_result writer_write_frame(struct wire_writer *w)
{
	uint32_t len = wire_end(w, writer.sequence + 1);

	return writer_write(w->buf, len, 1);
}

static enum writer_result writer_write_reset(void)
{
	uint8_t bytes[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, bytes, WIRE_RESET);
	return writer_write_frame(&w);
}

uint64_t writer_full_since(void)
{
	return writer.full_since_ns;
}

static void writer_drop_pending(enum wire_drop cause)
{
	if (writer.frames[PENDING_THREAD].records)
		threads_lost();
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		ledger_drop(e, cause, writer.waiting[e].n, writer.waiting[e].weight);
	if (writer.frames[PENDING_LOCK].records)
		open_waits_lost();
	if (writer.frames[PENDING_STATE].records)
		thread_states_forget();
	writer_begin_frames();
}

/* Gives the dictionary the memory that the rest of the agent leaves. */
static void writer_budget_dictionary(void)
{
	uint64_t others = writer_bytes() - writer_dictionary_bytes();

	dict_budget(others + DICT_BYTES_MIN < AGENT_BYTES_MAX ? AGENT_BYTES_MAX - others
							      : DICT_BYTES_MIN);
}

enum writer_result writer_new_epoch(void)
{
	enum writer_result r = writer_write_reset();

	if (r != WRITER_OK)
		return r;
	writer_drop_pending(WIRE_DROP_PIPE_FULL);
	writer_forget_definitions();
	open_waits_again();
	if (walker_names_full())
		walker_forget_names();
	writer_budget_dictionary();
	writer.torn = false;
	return WRITER_OK;
}

void writer_begin(int fd)
{
	writer.fd = fd;
	writer.sequence = 0;
	writer.torn = writer.gone = false;
	writer.full_since_ns = 0;
	if (!writer_fd_is_fifo(fd, &writer.device, &writer.inode))
		writer.inode = writer.device = 0;
	writer_forget_definitions();
	writer_begin_frames();
	writer_budget_dictionary();
}

/* A frame is in the pipe: counts its events as written. */
static void writer_frame_written(enum pending frame)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (writer_pending_of[e] == frame) {
			ledger_written(e, writer.waiting[e].n, writer.waiting[e].weight);
			writer.waiting[e].n = writer.waiting[e].weight = 0;
		}
	if (frame == PENDING_THREAD)
		threads_written();
	if (frame == PENDING_LOCK)
		open_waits_sent();
}

/* Pending frames that are written together: each write may wake the receiver and the daemon, and
 * most frames are short. */
struct group {
	uint8_t bytes[WIRE_FRAME_MAX];
	uint32_t len, frames;
	int first, end; /* its frames lie in [first, end) */
};

/* Gathers the frames from @first on, as many as a write takes whole. false = none is left. */
static bool writer_gather(struct group *g, int first)
{
	g->len = g->frames = 0;
	while (first < PENDING_COUNT && writer.frames[first].records == 0)
		first++;
	g->first = first;
	for (g->end = first; g->end < PENDING_COUNT; g->end++) {
		struct wire_writer *w = &writer.frames[g->end];

		if (w->records == 0)
			continue;
		if (g->len + w->len > sizeof(g->bytes))
			break;
		(void)wire_end(w, writer.sequence + ++g->frames);
		memcpy(g->bytes + g->len, w->buf, w->len);
		g->len += w->len;
	}
	return g->frames > 0;
}

static void writer_group_written(const struct group *g)
{
	for (int i = g->first; i < g->end; i++)
		if (writer.frames[i].records) {
			/* so that it is not counted again if a later frame is refused */
			writer.frames[i].records = 0;
			writer_frame_written(i);
		}
}

enum writer_result writer_flush(void)
{
	enum writer_result r = WRITER_OK;
	struct group g = { .end = 0 };

	/* definitions of a stack that was given up halfway: their ids are void */
	for (int i = 0; writer.torn && i <= PENDING_CONTEXT; i++)
		wire_begin(&writer.frames[i], writer.bytes[i], pending_type[i]);
	while (r == WRITER_OK && writer_gather(&g, g.end)) {
		r = writer_write(g.bytes, g.len, g.frames);
		if (r == WRITER_OK)
			writer_group_written(&g);
		else if (g.first < PENDING_THREAD)
			writer.torn = true;
	}
	if (r == WRITER_FULL)
		writer_drop_pending(WIRE_DROP_PIPE_FULL);
	else if (r == WRITER_OK)
		writer_begin_frames();
	return r; /* WRITER_GONE: writer_discard() counts what is pending */
}

uint32_t writer_epoch(void)
{
	return writer.torn ? 0 : writer.epoch;
}

enum writer_result writer_ledger(void)
{
	uint8_t bytes[WIRE_FRAME_MAX];
	struct wire_ledger record;
	struct wire_writer w;
	enum writer_result r;
	struct counters now;
	uint64_t head;

	if (!ledger_snapshot(&now, &head))
		return WRITER_FULL; /* handlers were busy all the time: the caller tries again */
	r = writer_drain(head);
	if (r != WRITER_GONE)
		r = writer_flush();
	if (r == WRITER_GONE)
		return r;
	ledger_fill(&now, &record);
	wire_begin(&w, bytes, WIRE_LEDGER);
	(void)wire_put_ledger(&w, &record);
	return writer_write_frame(&w);
}

enum writer_result writer_hello(const struct wire_hello *hello)
{
	uint8_t bytes[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, bytes, WIRE_HELLO);
	(void)wire_put_hello(&w, hello);
	return writer_write_frame(&w);
}

enum writer_result writer_fault(enum wire_type type, uint32_t code, const char *step,
				const char *what)
{
	struct wire_fault record = { code, wire_text(step), wire_text(what) };
	uint8_t bytes[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, bytes, type);
	(void)wire_put_fault(&w, &record);
	return writer_write_frame(&w);
}

void writer_discard(void)
{
	const struct ring_sample *s;

	if (writer.begun)
		writer_drop_pending(WIRE_DROP_NO_READER);
	/* the end is 0 if the session has failed before it had a ring */
	while ((s = ring_peek(&agent.ring, ring_head_sig(&agent.ring)))) {
		if (s->event != RING_NAME)
			ledger_drop(s->event, WIRE_DROP_NO_READER, 1, s->weight);
		ring_pop(&agent.ring);
	}
}

void writer_free(void)
{
	writer_forget_definitions();
	writer_contexts_free();
	writer.begun = false;
}
