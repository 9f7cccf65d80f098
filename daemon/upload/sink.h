/*
 * A sink: where profiles of some JVMs go, once in an interval. A type of sink is one struct of
 * functions, sink_type; sinks.c has the list. What all have in common is in sink.c (what waits,
 * what is sent, again and when), take.c (from the history into the spool), spool.c and ledger.c (on
 * disk).
 *
 * The way of a body: encode() makes it of one interval of one JVM and hands it to sink_put(); it is
 * in the spool, and when all of the interval are, the ledger says so. Then send() begins to send
 * it, and sink_done() says, once, what became of it.
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

#define SINK_TEXT_MAX 400 /* of what servers say */
#define SINK_TEST_SEQ UINT64_MAX /* the test's file in the spool */

/* What the settings name and only root may read; read at the start, in no log and no status. */
struct sink_secrets {
	char password[256], bearer[4096];
	char access_key[128], secret_key[128], session_token[2048];
	char *ca, *cert, *key; /* PEM; NULL = not given */
};

/* What is encoded: one interval of one JVM. */
struct sink_interval {
	uint64_t begin_real_ns, end_real_ns;
	/* of that process alone, and the sink's events; NULL: of a body of several JVMs */
	const struct profile *profile;
	const struct profile_process *process;
	const char *node; /* this host's name */
	/* of bodies made by sink_encode_parts(), for whoever splits them later; 0 = not made so */
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
	bool too_large; /* for the server; it is split when no interval is on its way */
	bool is_test; /* `kindling sink test`: in no ledger */
	bool left; /* sink_last_byte() was called */
	unsigned resets; /* of its request by the server, without an answer */
	void *request; /* the type's, while it is in flight */
};

enum sink_verdict {
	SINK_CONFIRMED, /* it is there */
	SINK_RETRY, /* it is not there, and may be tried again */
	SINK_UNKNOWN, /* it may be there; tried again */
	SINK_REFUSED, /* never */
	SINK_TOO_LARGE, /* never in one piece: halves are tried, where the type makes parts */
	SINK_DAMAGED, /* the spool's file is not what it was */
};

/* See sink_encode_parts(). */
typedef int sink_part_fn(struct sink *s, const struct sink_interval *in, const struct profile *p,
			 unsigned word, unsigned part);

struct sink_type {
	/* Is it complete, and possible? Defaults are set, s->data may be. 0, or -errno and a
	 * sentence. */
	int (*open)(struct sink *s, char *why, size_t why_size);
	/* Bodies of one interval, by sink_put(). 0, -ENOMEM, -EINVAL: this format cannot hold it.
	 */
	int (*encode)(struct sink *s, const struct sink_interval *in);
	/* 0: sink_done() is called, once, not before this returns; -errno: nothing was begun;
	 * -EAGAIN: s->error has a sentence. */
	int (*send)(struct sink *s, struct sink_file *f);
	/* The program ends: lets go of a file that is in flight, without sink_done(). */
	void (*cancel)(struct sink *s, struct sink_file *f);
	void (*close)(struct sink *s); /* may be NULL; frees s->data */
	/* What encode() kept back, see sink_hold(): the JVMs of the interval are all there. @in has
	 * no profile; NULL: the interval is taken anew some time, all of it is forgotten. NULL =
	 * nothing is kept back. */
	void (*flush)(struct sink *s, const struct sink_interval *in);
	/* One of the two is how a body is split; NULL = it cannot be */
	sink_part_fn *part;
	/* The halves of a body, by sink_put(), of its file, which is borrowed. 0, -EMSGSIZE: it has
	 * no two rows, or -errno. */
	int (*halve)(struct sink *s, const struct sink_interval *in, const struct spool_header *h,
		     int fd);
	unsigned in_flight_max;
	/* Of a type that takes no intervals: once a second; what it has it gives to
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
	char dead[SINK_TEXT_MAX]; /* why it does nothing; "" = it works */

	int dfd, ledger_fd; /* its spool */
	struct ledger ledger;
	struct sink_file *files; /* by number */
	unsigned n_files, n_in_flight;
	uint64_t bytes;
	uint64_t body_max; /* of the server, as far as it was seen; 0 = not */

	struct sink_take *take; /* an interval on its way into the spool; NULL = none */

	unsigned failures; /* one after the other */
	uint64_t next_try_mono_ns;
	struct loop_timer *timer;
	char error[SINK_TEXT_MAX]; /* of the last attempt; "" = it went well */

	struct sink_file *test; /* NULL = none */
	bool test_encodes; /* sink_put() is called for it */
};

extern const struct sink_type *const sink_types[SINK_TYPE_COUNT]; /* sinks.c; NULL = not built */

/* ---- for types ------------------------------------------------------------------------------- */

/*
 * One body. @key: unique for target, interval and what is in it, and the same when it is made
 * again; cut where it is too long. @samples: that are in it. 0, or -errno: it is dropped, and
 * counted.
 */
int sink_put(struct sink *s, const struct sink_interval *in, const char *key,
	     const char *content_type, const void *body, size_t len, uint64_t samples);
/* @samples of an interval go into a body that is made later, by encode() or flush(): before it is
 * put sink_unhold() says so. What is never put is dropped, and counted. */
void sink_hold(struct sink *s, uint64_t samples);
void sink_unhold(struct sink *s, uint64_t samples);
/* The fate of @f. @retry_after_ns: as the server says; 0 = it does not. @why: its words; may be "".
 */
void sink_done(struct sink_file *f, enum sink_verdict verdict, uint64_t retry_after_ns,
	       const char *why);
struct loop *sink_loop(const struct sink *s);
/* Is it one of the JVMs that `targets` names? */
bool sink_takes_jvm(const struct sink *s, const char *name, const char *container, const char *pod,
		    const char *labels);
/* A body of no interval: as sink_put(), and the ledger counts it at once. */
int sink_put_now(struct sink *s, const struct sink_interval *in, const char *key,
		 const char *content_type, const void *body, size_t len, uint64_t samples);
/*
 * The last byte of @f is about to leave, for a server that would count a second sending twice: from
 * here on it is not sent again, also after a SIGKILL, and unconfirmed until sink_done() says
 * otherwise. @thinned of its samples are not in what was sent: the others stand for them.
 */
void sink_last_byte(struct sink_file *f, uint64_t thinned);
/* Asks kindlingd for a recording, see upload_message.h; @ask->say is filled in. */
void sink_record(const struct sink *s, struct upload_record *ask);
uint64_t sink_random(uint64_t below);
struct multi *sink_multi(const struct sink *s);

/* encode() for formats of reports: one body, or one an event where the format holds no more. */
int sink_encode_report(struct sink *s, const struct sink_interval *in);
/*
 * For servers that take so much and no more: @fn is called with all rows of @events, and where it
 * says -EMSGSIZE with halves of them, as often as it takes. Each is one body with sink_put() or
 * -EMSGSIZE. @part says which rows: 1 = all, 2 and 3 its halves, 4 and 5 those of 2 ...: the same
 * whenever they are made of the same history. 0 or -errno.
 */
int sink_encode_parts(struct sink *s, const struct sink_interval *in, unsigned events,
		      unsigned word, sink_part_fn *fn);
/* The two halves of a body that was made so, in->profile has all rows of in->events. -EMSGSIZE:
 * it has no two rows. */
int sink_encode_halves(struct sink *s, const struct sink_interval *in, sink_part_fn *fn);
/* Is a body of @len bytes, of the rows of @p, one that this server was seen not to take? */
bool sink_is_too_large(const struct sink *s, size_t len, const struct profile *p);
/* "cart_4711-98123_2026-11-22T20-04-00Z": letters, digits and ._- */
void sink_key(const struct sink_interval *in, char *buf, size_t size);
/* Of such a key: @text or the service, cut, and what may mean something to a path, a shell or a
 * query is a "-". */
void sink_key_word(const char *text, char *buf, size_t size);
void sink_key_service(const struct sink_interval *in, char *buf, size_t size);
/* The format that the settings name, else @other. 0 or -EINVAL and a sentence. */
int sink_choose_format(struct sink *s, enum report_format other, char *why, size_t why_size);

/* ---- inside the room ------------------------------------------------------------------------- */

/* sink.c. 0 or -errno and a sentence; the spool is below @spool_dfd. */
int sink_new(struct upload *u, const struct config_sink *c, int spool_dfd,
	     const struct sink_secrets *secrets, struct sink **ret, char *why, size_t why_size);
struct sink *sink_free(struct sink *s);
/* Sends what is due, drops what is too old or too much. */
void sink_run(struct sink *s);
/* Of samples that the sink takes: they were lost before the history. */
void sink_not_stored(struct sink *s, const uint64_t samples[WIRE_EVENT_COUNT]);
/* Sends one small profile now; the answer goes to upload.on_test(). 0 or -errno. */
int sink_test(struct sink *s);
bool sink_takes_event(const struct sink *s, unsigned event);
/* A body becomes file @seq of the spool; *ret_header says what it is. 0 or -errno. */
int sink_spool(struct sink *s, uint64_t seq, const struct sink_interval *in, const char *key,
	       const char *content_type, const void *body, size_t len, uint64_t samples,
	       struct spool_header *ret_header);
/* File @seq waits from now on: the ledger counts it already. @unknown: it may have arrived. 0 or
 * -ENOMEM. */
int sink_take_in(struct sink *s, uint64_t seq, const struct spool_header *h, bool unknown);
/* The ledger counts @f elsewhere, and names its number. */
void sink_forget(struct sink *s, struct sink_file *f);

/* take.c: the next interval, when the history is settled up to its end. */
void take_run(struct sink *s, uint64_t settled_real_ns);
void take_cancel(struct sink *s);
/* Halves of @f take its place, when no interval is on its way: they are made of the history anew.
 * 0, and @f is gone; -EMSGSIZE: it cannot be split; -errno. */
int take_split(struct sink *s, struct sink_file *f);

/* upload_status.c */
struct text_out;
void sink_status(const struct sink *s, struct text_out *t);
