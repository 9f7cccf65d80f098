/*
 * A sink: a place to which profiles of some JVMs are delivered once in an interval. A type of sink
 * is one struct of functions, sink_type; sinks.c has the list. Shared by all: sink.c (the queue,
 * sending, retries), take.c (from the history into the spool), spool.c and ledger.c (on disk).
 *
 * The path of a body: encode() makes it from one interval of one JVM and passes it to sink_put(),
 * which writes it to the spool; when the whole interval is there, it is counted in the ledger. Then
 * send() starts to send it, and sink_done() is called once with the result.
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

#define SINK_TEXT_MAX 400 /* longest text of a server that is kept */
#define SINK_TEST_SEQ UINT64_MAX /* number of the test's file in the spool */

/* Secrets named in the settings that only root may read; read at the start, and never shown in a
 * log or in status. */
struct sink_secrets {
	char password[256], bearer[4096];
	char access_key[128], secret_key[128], session_token[2048];
	char *ca, *cert, *key; /* PEM; NULL = not given */
};

/* The input of encode(): one interval of one JVM. */
struct sink_interval {
	uint64_t begin_real_ns, end_real_ns;
	/* of that process alone, and the sink's events; NULL: of a body of several JVMs */
	const struct profile *profile;
	const struct profile_process *process;
	const char *node; /* this host's name */
	/* number of the part, for bodies made by sink_encode_parts(), to split them later; 0 = not
	 * made so */
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
	bool unknown; /* it may have arrived: the last answer was lost */
	bool too_large; /* too large for the server; it is split when no interval is being taken */
	bool is_test; /* `kindling sink test`: not counted in any ledger */
	bool left; /* sink_last_byte() was called */
	unsigned resets; /* of its request by the server, without an answer */
	bool only_reset; /* that it is too large is a guess from them */
	void *request; /* the type's, while it is in flight */
};

enum sink_verdict {
	SINK_CONFIRMED, /* it arrived */
	SINK_RETRY, /* it did not arrive, and may be retried */
	SINK_UNKNOWN, /* it may have arrived; retried */
	SINK_REFUSED, /* rejected for good */
	SINK_TOO_LARGE, /* too large in one piece: halves are tried, if the type makes parts */
	SINK_DAMAGED, /* the spool's file is damaged */
};

/* See sink_encode_parts(). */
typedef int sink_part_fn(struct sink *s, const struct sink_interval *in, const struct profile *p,
			 unsigned word, unsigned part);

struct sink_type {
	/* Is the configuration complete and possible? Sets defaults, may set s->data. 0, or -errno
	 * and a sentence. */
	int (*open)(struct sink *s, char *why, size_t why_size);
	/* Makes bodies of one interval with sink_put(). 0, -ENOMEM, -EINVAL: this format cannot
	 * hold it. */
	int (*encode)(struct sink *s, const struct sink_interval *in);
	/* 0: sink_done() is called, once, not before this returns; -errno: nothing was started;
	 * -EAGAIN: s->error has a sentence. */
	int (*send)(struct sink *s, struct sink_file *f);
	/* The program ends: drops a file in flight, without sink_done(). */
	void (*cancel)(struct sink *s, struct sink_file *f);
	void (*close)(struct sink *s); /* may be NULL; frees s->data */
	/* Makes bodies of what encode() kept back, see sink_hold(): all JVMs of the interval are
	 * done. @in has no profile; NULL: the interval will be taken again some time, so everything
	 * is dropped. NULL = the type keeps nothing back. */
	void (*flush)(struct sink *s, const struct sink_interval *in);
	/* One of the two is how a body is split; NULL = it cannot be */
	sink_part_fn *part;
	/* The halves of a body, by sink_put(), of its file, which is borrowed. 0, -EMSGSIZE: it has
	 * no two rows, or -errno. */
	int (*halve)(struct sink *s, const struct sink_interval *in, const struct spool_header *h,
		     int fd);
	unsigned in_flight_max;
	/* For a type that takes no intervals: called once a second; passes its bodies to
	 * sink_put_now(). */
	void (*tick)(struct sink *s);
	/* The answer to sink_record(), with a profile or -1; @fd is borrowed. */
	void (*recorded)(struct sink *s, const struct upload_recorded *answer, int fd);
	/* `kindling sink test`; ends with upload.on_test(). 0 or -errno. */
	int (*test)(struct sink *s);
};

struct sink {
	struct upload *upload;
	const struct config_sink *config;
	const struct sink_type *type;
	void *data; /* the type's */
	struct sink_secrets secrets;
	unsigned events; /* bits; 0 = all */
	enum report_format format;
	char dead[SINK_TEXT_MAX]; /* why it cannot work; "" = it works */

	int dfd, ledger_fd; /* its spool */
	struct ledger ledger;
	struct sink_file *files; /* by number */
	unsigned n_files, n_in_flight;
	uint64_t bytes;
	uint64_t body_max; /* the server's limit, as observed; 0 = unknown */

	struct sink_take *take; /* the interval that is being taken; NULL = none */

	unsigned failures; /* one after the other */
	uint64_t next_try_mono_ns;
	struct loop_timer *timer;
	char error[SINK_TEXT_MAX]; /* error of the last attempt; "" = it succeeded */

	struct sink_file *test; /* NULL = none */
	bool test_encodes; /* the body for which sink_put() is called */
};

extern const struct sink_type *const sink_types[SINK_TYPE_COUNT]; /* sinks.c; NULL = unknown in this
								   * build */

/* ---- for types ------------------------------------------------------------------------------- */

/*
 * Adds one body. @key: unique for target, interval and content, and the same when it is made again;
 * cut if it is too long. @samples: in the body. 0, or -errno: it is dropped, and counted.
 */
int sink_put(struct sink *s, const struct sink_interval *in, const char *key,
	     const char *content_type, const void *body, size_t len, uint64_t samples);
/* @samples of an interval go into a body that is made later, by encode() or flush(), which calls
 * sink_unhold() before it puts the body. Samples that are never put are dropped, and counted. */
void sink_hold(struct sink *s, uint64_t samples);
void sink_unhold(struct sink *s, uint64_t samples);
/* The result for @f. @retry_after_ns: the server's; 0 = none. @why: its message; may be "". */
void sink_done(struct sink_file *f, enum sink_verdict verdict, uint64_t retry_after_ns,
	       const char *why);
struct loop *sink_loop(const struct sink *s);
/* Does `targets` select this JVM? */
bool sink_takes_jvm(const struct sink *s, const char *name, const char *container, const char *pod,
		    const char *labels);
/* A body outside of intervals: like sink_put(), but the ledger counts it at once. */
int sink_put_now(struct sink *s, const struct sink_interval *in, const char *key,
		 const char *content_type, const void *body, size_t len, uint64_t samples);
/*
 * The last byte of @f is about to be sent, to a server that would count a second delivery again:
 * from now on it is never sent again, not even after a SIGKILL, and it is unconfirmed until
 * sink_done() reports a result. @thinned of its samples were left out of what was sent: the others
 * carry their weight.
 */
void sink_last_byte(struct sink_file *f, uint64_t thinned);
/* Asks kindlingd for a recording, see upload_message.h; @ask->say is filled in. */
void sink_record(const struct sink *s, struct upload_record *ask);
uint64_t sink_random(uint64_t below);
struct multi *sink_multi(const struct sink *s);

/* encode() for formats of reports: one body, or one for each event if the format holds only one. */
int sink_encode_report(struct sink *s, const struct sink_interval *in);
/*
 * For servers with a size limit: calls @fn with all rows of @events, and where it returns -EMSGSIZE
 * with halves of them, as often as needed. Each call passes one body to sink_put() or returns
 * -EMSGSIZE. @part numbers the rows: 1 = all, 2 and 3 its halves, 4 and 5 those of 2 ...: the same
 * whenever they are made from the same history. 0 or -errno.
 */
int sink_encode_parts(struct sink *s, const struct sink_interval *in, unsigned events,
		      unsigned word, sink_part_fn *fn);
/* Makes the two halves of such a body; in->profile has all rows of in->events. -EMSGSIZE: it has
 * fewer than two rows. */
int sink_encode_halves(struct sink *s, const struct sink_interval *in, sink_part_fn *fn);
/* Is a body of @len bytes, made from the rows of @p, beyond the observed limit of the server? */
bool sink_is_too_large(const struct sink *s, size_t len, const struct profile *p);
/* "cart_4711-98123_2026-11-22T20-04-00Z": letters, digits and ._- */
void sink_key(const struct sink_interval *in, char *buf, size_t size);
/* For such a key: @text or the service, cut, with every character that is special in a path, a
 * shell or a query replaced by "-". */
void sink_key_word(const char *text, char *buf, size_t size);
void sink_key_service(const struct sink_interval *in, char *buf, size_t size);
/* The format of the settings, else @other. 0 or -EINVAL and a sentence. */
int sink_choose_format(struct sink *s, enum report_format other, char *why, size_t why_size);

/* ---- inside the room ------------------------------------------------------------------------- */

/* sink.c. 0 or -errno and a sentence; the spool is below @spool_dfd. */
int sink_new(struct upload *u, const struct config_sink *c, int spool_dfd,
	     const struct sink_secrets *secrets, struct sink **ret, char *why, size_t why_size);
struct sink *sink_free(struct sink *s);
/* Sends what is due, drops what is too old or too much. */
void sink_run(struct sink *s);
/* Counts samples that were lost before the history. */
void sink_not_stored(struct sink *s, const uint64_t samples[WIRE_EVENT_COUNT]);
/* Sends one small profile now; the answer goes to upload.on_test(). 0 or -errno. */
int sink_test(struct sink *s);
bool sink_takes_event(const struct sink *s, unsigned event);
/* Writes a body as file @seq of the spool; *ret_header describes it. 0 or -errno. */
int sink_spool(struct sink *s, uint64_t seq, const struct sink_interval *in, const char *key,
	       const char *content_type, const void *body, size_t len, uint64_t samples,
	       struct spool_header *ret_header);
/* Queues file @seq, which the ledger already counts. @unknown: it may have arrived. 0 or
 * -ENOMEM. */
int sink_take_in(struct sink *s, uint64_t seq, const struct spool_header *h, bool unknown);
/* Moves @f to another counter in the ledger, and stores its number. */
void sink_forget(struct sink *s, struct sink_file *f);

/* take.c: takes the next interval, when the history is complete up to its end. */
void take_run(struct sink *s, uint64_t settled_real_ns);
void take_cancel(struct sink *s);
/* Replaces @f by its halves, when no interval is being taken: they are made from the history again.
 * 0, and @f is gone; -EMSGSIZE: it cannot be split; -errno. */
int take_split(struct sink *s, struct sink_file *f);

/* upload_status.c */
struct text_out;
void sink_status(const struct sink *s, struct text_out *t);
