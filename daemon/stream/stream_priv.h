/*
 * Shared by the files of the stream room: stream.c (bytes, frames, sessions), dictionary.c and
 * dictionary_frames.c (the meaning of ids), thread_names.c, contexts.c (traces), event_records.c
 * (samples, waits, allocations, states), accounts.c (the accounting), claims.c (is it plausible?).
 * Functions that take @f return 0, or -errno with @f set: the stream has ended.
 */
#pragma once

#include "daemon/stream/stream.h"

#define STREAM_BLOCK_BYTES 32 /* malloc's own, at most, for each text */

struct stream_method {
	uint32_t class_id, name_id, sig_id, file_id; /* class_id 0 and name_id 0 = not defined */
};

/* Small, because nodes are most of what a stream takes. */
struct stream_node_entry {
	uint64_t parent : 22, frame : 22; /* positions */
	uint64_t depth : 12; /* 1 = at the root; 0 = not defined */
	uint64_t mark : 8; /* see stream_node_mark() */
};
#define STREAM_NODES_MAX (1u << 22)
_Static_assert(sizeof(struct stream_node_entry) == 8, "packed");
_Static_assert(STREAM_DEPTH_MAX + 1 < 4096, "the bits suffice");

/* What a node is, without its place in stacks: usually a line of a method. */
struct stream_frame_entry {
	uint32_t ref;
	int32_t line; /* WIRE_KIND_NATIVE, which has no line: the low bits of the offset */
	uint8_t kind;
	uint8_t offset_high; /* WIRE_KIND_NATIVE: the offset's bits 32 to 39 */
};
struct stream_frames {
	struct stream_frame_entry *list;
	uint32_t *slots; /* finds a frame in the list */
	uint32_t n, cap, n_slots;
};
#define STREAM_OFFSET_MAX ((1ull << 40) - 1) /* no file with code is larger */

struct stream_thread {
	uint32_t tid;
	uint32_t number : 31; /* of the name: see struct stream_sample */
	/* the name stays until room is needed: samples of the thread may still arrive */
	uint32_t ended : 1;
	char *name;
};

/* The meaning of ids; arrays indexed by id. Everything is owned. */
struct stream_dictionary {
	char **strings;
	struct stream_text *texts; /* blocks that hold the strings; the first is being filled */
	struct stream_method *methods;
	struct wire_mapping *mappings;
	struct stream_node_entry *nodes;
	struct stream_frames frames; /* of the nodes */
	uint64_t seed; /* of the hashes of frames */
	uint32_t n_strings, n_methods, n_mappings, n_nodes; /* allocated */
	size_t memory; /* bytes */
};

/* Causes of drops that also occur when the reader is held back. */
enum { ACCOUNTS_FULL_RING, ACCOUNTS_FULL_PIPE, ACCOUNTS_FULL_COUNT };

/* Names of threads: a hash table by tid. */
struct stream_threads {
	struct stream_thread *table;
	uint32_t n, size, seed;
	size_t memory; /* bytes of the names */
};

/* The contexts of tracers. */
struct stream_contexts {
	struct stream_context *table; /* NULL or WIRE_CONTEXT_MAX entries; one block holds both
					 texts, trace_id owns it */
	size_t memory; /* bytes */
};

struct stream {
	struct stream_ops ops;
	void *userdata;
	uint8_t partial[WIRE_FRAME_MAX]; /* the incomplete frame at the end of the bytes so far */
	uint32_t partial_len;
	bool has_secret;
	uint8_t secret[WIRE_SECRET_BYTES];
	bool greeted; /* a HELLO came; frames before it belong to an earlier session */
	uint64_t sequence;
	uint64_t newest_ns; /* see stream_newest_ns() */
	struct stream_dictionary dictionary;
	struct stream_threads threads;
	struct stream_contexts contexts;
	struct stream_counts counts; /* of the current session; bytes and frames: of all sessions */
	struct {
		uint64_t n, weight;
	} at_ledger[WIRE_EVENT_COUNT]; /* what had arrived at the last LEDGER */
	struct stream_counts past; /* sums of sessions before the last HELLO */
	uint32_t sessions;
	struct stream_limits limits; /* as of the last reading */
	bool limits_asked; /* they were read during this stream_feed() */
	uint64_t believed[WIRE_EVENT_COUNT]; /* the weights accepted so far, in all sessions */
	bool held_back; /* the reader is held back on purpose */
	/* drops of this session that the held-back reader caused, by ACCOUNTS_FULL_x */
	struct {
		uint64_t n, weight;
	} quota[WIRE_EVENT_COUNT][ACCOUNTS_FULL_COUNT];
};

/* dictionary.c: definitions, in the order of their ids. */
int dictionary_add_string(struct stream *s, const struct wire_string *w, struct fault *f);
int dictionary_add_method(struct stream *s, const struct wire_method *w, struct fault *f);
int dictionary_add_mapping(struct stream *s, const struct wire_mapping *w, struct fault *f);
int dictionary_add_node(struct stream *s, const struct wire_node *w, struct fault *f);
void dictionary_forget(struct stream *s);
bool dictionary_has_string(const struct stream *s, uint32_t id);
bool dictionary_has_node(const struct stream *s, uint32_t id);
/* "" if @id is not defined. dictionary_class() returns the printable form, "java.lang.String". */
const char *dictionary_string(const struct stream *s, uint32_t id);
const char *dictionary_class(struct stream *s, uint32_t id);
/* malloc'ed, without invalid UTF-8; NULL without memory */
char *dictionary_clean_copy(struct wire_str str, size_t *ret_len);

/* For dictionary_frames.c: take memory of the stream's. */
int dictionary_charge(struct stream *s, size_t bytes, struct fault *f);
int dictionary_grow(struct stream *s, void **array, uint32_t *n, uint32_t id, size_t size,
		    struct fault *f);

/* dictionary_frames.c. The position of this frame, which is added if it is new. 0 or -errno. */
int frames_add(struct stream *s, const struct stream_frame_entry *frame, uint32_t *ret,
	       struct fault *f);
void frames_forget(struct stream *s);

/* thread_names.c */
int thread_names_add(struct stream *s, const struct wire_thread *w, struct fault *f);
/* The name of a thread, "" if unknown, and its number, as in struct stream_sample. */
const char *thread_names_find(const struct stream *s, uint32_t tid, uint32_t *ret_number);
void thread_names_forget(struct stream *s);

/* contexts.c: the present meanings of the ids of trace contexts. */
int contexts_add(struct stream *s, const struct wire_context *w, struct fault *f);
/* false with @f set: @id is not defined. For @id 0 *ret is NULL. */
bool contexts_find(const struct stream *s, uint32_t id, const struct stream_context **ret,
		   struct fault *f);
void contexts_forget(struct stream *s);

/* event_records.c: decodes the records of a frame of samples. */
int event_records_on_samples(struct stream *s, const struct wire_frame *frame, struct fault *f);
int event_records_add_lock(struct stream *s, const struct wire_lock *w, struct fault *f);
int event_records_add_alloc(struct stream *s, const struct wire_alloc *w, struct fault *f);
int event_records_add_offcpu(struct stream *s, const struct wire_offcpu *w, struct fault *f);
int event_records_add_state(struct stream *s, const struct wire_state *w, struct fault *f);
int event_records_add_virtual(struct stream *s, const struct wire_virtual *w, struct fault *f);
int event_records_add_pause(struct stream *s, const struct wire_pause *w, struct fault *f);

/* claims.c: can the process have done this? */
bool claims_allow(struct stream *s, enum wire_event event, uint64_t weight);
bool claims_allow_accounts(struct stream *s, enum wire_event event, const struct wire_accounts *b);

/* accounts.c: counts one more event. 1 = pass it on, 0 = it is implausible, -errno with @f set. */
int accounts_deliver(struct stream *s, enum wire_event event, uint64_t weight, struct fault *f);
int accounts_on_ledger(struct stream *s, const struct wire_frame *frame, struct fault *f);
/* Begins another session; the counts of earlier ones are kept. -EBADMSG after too many. */
int accounts_begin_session(struct stream *s, struct fault *f);
