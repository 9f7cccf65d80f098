/*
 * A sink: a place to which profiles of some JVMs are delivered once in an interval. A type of sink
 * is one struct sink_type; sinks.c lists them. Common to all types: sink.c (the queue, sending,
 * retries), take.c (from the history into the spool), spool.c and ledger.c (on disk).
 *
 * The way of a body: encode() makes it from one interval of one JVM and passes it to sink_put(),
 * which writes it to the spool. Once all bodies of the interval are there the ledger counts them.
 * Then send() starts to send each, and sink_done() is called once with the result.
 */
#pragma once

#include "daemon/core/config_sinks.h"
#include "daemon/core/loop.h"
#include "daemon/profile/profile.h"
#include "daemon/report/report.h"
#include "daemon/upload/ledger.h"
#include "daemon/upload/spool.h"

struct sink;
struct upload;
struct upload_record;
struct upload_recorded;
struct multi;

#define SINK_TEXT_MAX 400 /* bytes of a server's message that are kept */
#define SINK_TEST_SEQ UINT64_MAX /* the number of a test's file in the spool */

/* Secrets that the settings name, read at the start because only root may read them. They appear
 * in no log and no status. */
struct sink_secrets {
	char password[256], bearer[4096];
	char access_key[128], secret_key[128], session_token[2048];
	char *ca, *cert, *key; /* PEM; NULL = not given */
};

/* What encode() gets: one interval of one JVM. */
struct sink_interval {
	uint64_t begin_real_ns, end_real_ns;
	/* of this process only, with the sink's events; NULL for a body of several JVMs */
	const struct profile *profile;
	const struct profile_process *process;
	const char *node; /* this host's name */
	/* for sink_encode_parts(), which can make the same part again later; part 0 = made in
	 * another way */
	unsigned events, word, part;
};

/* A body in the spool. */
struct sink_file {
	struct sink_file *next;
	struct sink *sink;
	uint64_t seq;
	uint64_t samples, bytes;
	uint64_t begin_real_ns;
	bool in_flight;
	bool unknown; /* it may have arrived, because the last answer was lost */
	bool too_large; /* for the server; it is split once no interval is being taken */
	bool is_test; /* of `kindling sink test`: no ledger counts it */
	bool left; /* sink_last_byte() was called */
	unsigned resets; /* how often the server reset its request without an answer */
	bool only_reset; /* too_large is a guess because of resets */
	void *request; /* owned by the type while it is in flight */
};

enum sink_verdict {
	SINK_CONFIRMED, /* it arrived */
	SINK_RETRY, /* it did not arrive: try again */
	SINK_UNKNOWN, /* it may have arrived: try again */
	SINK_REFUSED, /* rejected for good */
	SINK_TOO_LARGE, /* in one piece: split, if the type can */
	SINK_DAMAGED, /* the spool's file is damaged */
};

/* See sink_encode_parts(). */
typedef int sink_part_fn(struct sink *s, const struct sink_interval *in, const struct profile *p,
			 unsigned word, unsigned part);

struct sink_type {
	/* Checks whether the settings are complete and possible, sets defaults, may set s->data.
	 * 0, or -errno and a sentence. */
	int (*open)(struct sink *s, char *why, size_t why_size);
	/* Makes bodies of one interval and passes them to sink_put(). 0, -ENOMEM, or -EINVAL:
	 * this format cannot hold the profile. */
	int (*encode)(struct sink *s, const struct sink_interval *in);
	/* Starts to send @f. 0: sink_done() will be called once, after the return. -errno:
	 * nothing was started; with -EAGAIN s->error says why. */
	int (*send)(struct sink *s, struct sink_file *f);
	/* Gives up a file in flight because the program ends; sink_done() is not called. */
	void (*cancel)(struct sink *s, struct sink_file *f);
	void (*close)(struct sink *s); /* may be NULL; frees s->data */
	/* All JVMs of the interval are done: makes bodies of what encode() held back, see
	 * sink_hold(). @in has no profile. @in NULL: the interval will be taken again, so what is
	 * held is dropped. NULL = the type holds nothing back. */
	void (*flush)(struct sink *s, const struct sink_interval *in);
	/* a body is split by one of these two; both NULL = it cannot be */
	sink_part_fn *part;
	/* Puts the two halves of a body by sink_put(); @fd is its file, borrowed. 0, -EMSGSIZE:
	 * it has fewer than two rows, or -errno. */
	int (*halve)(struct sink *s, const struct sink_interval *in, const struct spool_header *h,
		     int fd);
	unsigned in_flight_max;
	/* For types that do not work by intervals: called once a second; passes bodies to
	 * sink_put_now(). */
	void (*tick)(struct sink *s);
	/* The answer to sink_record(): a profile in @fd, borrowed, or -1. */
	void (*recorded)(struct sink *s, const struct upload_recorded *answer, int fd);
	/* For `kindling sink test`: ends by a call of upload.on_test(). 0 or -errno. */
	int (*test)(struct sink *s);
};

struct sink {
	struct upload *upload;
	const struct config_sink *config;
	const struct sink_type *type;
	void *data; /* owned by the type */
	struct sink_secrets secrets;
	unsigned events; /* bits; 0 = all */
	enum report_format format;
	char dead[SINK_TEXT_MAX]; /* why it cannot work; "" = it works */

	int dfd, ledger_fd; /* of its spool */
	struct ledger ledger;
	struct sink_file *files; /* sorted by number */
	unsigned n_files, n_in_flight;
	uint64_t bytes;
	uint64_t body_max; /* bytes that the server accepts, as observed; 0 = unknown */
	uint64_t lost_bodies; /* since the program began: made, but given up or made again */

	struct sink_take *take; /* the interval that is being taken; NULL = none */

	unsigned failures; /* since the last success */
	uint64_t next_try_mono_ns;
	struct loop_timer *timer;
	char error[SINK_TEXT_MAX]; /* of the last attempt; "" = it succeeded */

	struct sink_file *test; /* NULL = none */
	bool test_encodes; /* sink_put() is called with the test's body */
};

extern const struct sink_type *const
	sink_types[SINK_TYPE_COUNT]; /* in sinks.c; NULL = this build does not have the type */

/* ---- for types ------------------------------------------------------------------------------- */

/*
 * Adds one body of an interval. @key identifies JVM, interval and content: it is the same when the
 * body is made again; cut if it is too long. @samples: how many are in the body. 0, or -errno: the
 * body is dropped, and counted so.
 */
int sink_put(struct sink *s, const struct sink_interval *in, const char *key,
	     const char *content_type, const void *body, size_t len, uint64_t samples);
/* Announces @samples of an interval that will go into a body later. encode() or flush() calls
 * sink_unhold() before it puts that body. Held samples that are never put are counted as
 * dropped. */
void sink_hold(struct sink *s, uint64_t samples);
void sink_unhold(struct sink *s, uint64_t samples);
/* Reports the result for @f. @retry_after_ns: as the server asked, or 0. @why: its message, or
 * "". */
void sink_done(struct sink_file *f, enum sink_verdict verdict, uint64_t retry_after_ns,
	       const char *why);
struct loop *sink_loop(const struct sink *s);
/* Does the setting `targets` select this JVM? */
bool sink_takes_jvm(const struct sink *s, const char *name, const char *container, const char *pod,
		    const char *labels);
/* Like sink_put(), for a body outside of intervals: the ledger counts it at once. */
int sink_put_now(struct sink *s, const struct sink_interval *in, const char *key,
		 const char *content_type, const void *body, size_t len, uint64_t samples);
/*
 * The last byte of @f is about to leave, to a server that would count a second delivery again. From
 * now on @f is never sent again, not even after a SIGKILL, and counts as unconfirmed until
 * sink_done() has a result. @thinned of its samples were left out of what was sent; the others
 * carry their weight.
 */
void sink_last_byte(struct sink_file *f, uint64_t thinned);
/* Asks kindlingd for a recording, see upload_message.h; fills in @ask->say. */
void sink_record(const struct sink *s, struct upload_record *ask);
uint64_t sink_random(uint64_t below);
struct multi *sink_multi(const struct sink *s);

/* encode() for types whose bodies are reports: one body, or one for each event if the format
 * holds only one event. */
int sink_encode_report(struct sink *s, const struct sink_interval *in);
/*
 * For servers that limit the size of a body. Calls @fn with all rows of @events; where @fn returns
 * -EMSGSIZE, calls it with each half of these rows, as often as needed. In each call @fn passes one
 * body to sink_put() or returns -EMSGSIZE. @part says which rows: 1 = all, 2 and 3 = the halves of
 * 1, 4 and 5 = those of 2 and so on; made from the same history again they are the same. 0 or
 * -errno.
 */
int sink_encode_parts(struct sink *s, const struct sink_interval *in, unsigned events,
		      unsigned word, sink_part_fn *fn);
/* Splits the part in->part of an interval in two and encodes both halves; in->profile has all rows
 * of in->events. 0, -EMSGSIZE: the part has fewer than two rows; or another -errno. */
int sink_encode_halves(struct sink *s, const struct sink_interval *in, sink_part_fn *fn);
/* Is a body of @len bytes, made from the rows of @p, larger than the server has been seen to
 * accept? */
bool sink_is_too_large(const struct sink *s, size_t len, const struct profile *p);
/* Makes a key such as "cart_4711-98123_2026-11-22T20-04-00Z", of letters, digits and ._- */
void sink_key(const struct sink_interval *in, char *buf, size_t size);
/* Writes @text, or the JVM's service, as a part of a key: cut, with "-" for every character that
 * means something in a path, a shell or a query. */
void sink_key_word(const char *text, char *buf, size_t size);
void sink_key_service(const struct sink_interval *in, char *buf, size_t size);
/* Sets the format: that of the settings, else @other. 0, or -EINVAL and a sentence. */
int sink_choose_format(struct sink *s, enum report_format other, char *why, size_t why_size);

/* ---- inside the room ------------------------------------------------------------------------- */

/* sink.c. Opens the sink's spool below @spool_dfd. 0, or -errno and a sentence. */
int sink_new(struct upload *u, const struct config_sink *c, int spool_dfd,
	     const struct sink_secrets *secrets, struct sink **ret, char *why, size_t why_size);
struct sink *sink_free(struct sink *s);
/* Was its spool removed, as by a user who wants the space? Then nothing can be taken any more. */
bool sink_is_gone(const struct sink *s);
/* Sends what is due; drops what is too old or too much. */
void sink_run(struct sink *s);
/* Counts samples that were lost on their way into the history. */
void sink_not_stored(struct sink *s, const uint64_t samples[WIRE_EVENT_COUNT]);
/* Sends one small profile now and reports the result by upload.on_test(). 0 or -errno. */
int sink_test(struct sink *s);
bool sink_takes_event(const struct sink *s, unsigned event);
/* Writes a body as file @seq of the spool and fills in *ret_header. 0 or -errno. */
int sink_spool(struct sink *s, uint64_t seq, const struct sink_interval *in, const char *key,
	       const char *content_type, const void *body, size_t len, uint64_t samples,
	       struct spool_header *ret_header);
/* Queues file @seq, which the ledger counts already. @unknown: it may have arrived. 0 or
 * -ENOMEM. */
int sink_take_in(struct sink *s, uint64_t seq, const struct spool_header *h, bool unknown);
/* Removes @f from the queue and from the spool. The caller has moved its samples to another counter
 * of the ledger. */
void sink_forget(struct sink *s, struct sink_file *f);

/* take.c: takes the next interval once the history is complete up to its end. */
void take_run(struct sink *s, uint64_t settled_real_ns);
void take_cancel(struct sink *s);
/* Replaces @f by its halves, made from the history again; not while an interval is being taken.
 * 0: @f is freed. -EMSGSIZE: it cannot be split. Or -errno. */
int take_split(struct sink *s, struct sink_file *f);

/* upload_status.c */
struct text_out;
void sink_status(const struct sink *s, struct text_out *t);
