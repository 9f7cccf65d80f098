/*
 * See sink.h: the bodies in the spool, in the order of their numbers, and when they are sent. A
 * failure is taken for the sink's, not the body's: nothing is sent until a random moment within a
 * span that doubles with each failure (full jitter), or until the moment that the server asks for;
 * then one body at a time.
 */
#include "daemon/upload/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/report/event_names.h"
#include "daemon/upload/upload.h"
#include "daemon/upload/upload_message.h"

#define BACKOFF_FIRST_NS (2 * NS_PER_S)
#define BACKOFF_MAX_NS	 (60 * NS_PER_S)
#define RETRY_AFTER_MAX	 (3600 * NS_PER_S)
/* Resets may have another cause than the size: a body that cannot be divided is sent up
 * to this many times. */
#define RESETS_GIVE_UP 10
#define SPLIT_MIN      (16u << 10) /* bytes; a server that takes less than this accepts nothing */

struct loop *sink_loop(const struct sink *s)
{
	return s->upload->loop;
}

struct multi *sink_multi(const struct sink *s)
{
	return s->upload->multi;
}

void sink_record(const struct sink *s, struct upload_record *ask)
{
	ask->say = UPLOAD_RECORD;
	/* if kindlingd-data does not accept it now, it is sent again in a second */
	(void)send(s->upload->fd, ask, sizeof(*ask), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool sink_takes_event(const struct sink *s, unsigned event)
{
	return s->events == 0 || s->events & 1u << event;
}

/* ---- accounting ------------------------------------------------------------------------------ */

static void sink_write_ledger(struct sink *s)
{
	int r = ledger_write(s->ledger_fd, &s->ledger, false);

	if (r < 0)
		log_err("sink.ledger", "sink=%s error=%s", s->config->name, log_str(strerror(-r)));
}

static void sink_unlink(struct sink *s, struct sink_file *f)
{
	struct sink_file **at = &s->files;

	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	s->n_files--;
	s->bytes -= f->bytes;
	s->n_in_flight -= f->in_flight;
}

void sink_forget(struct sink *s, struct sink_file *f)
{
	spool_remove(s->dfd, f->seq);
	sink_unlink(s, f);
	free(f);
}

/* Moves the samples of @f to the counter @to and removes its file. The ledger is written first:
 * a file that then stays behind is removed at the next start. */
static void sink_account(struct sink *s, struct sink_file *f, uint64_t *to)
{
	s->ledger.in_spool -= f->samples;
	*to += f->samples;
	s->ledger.done_seq = f->seq;
	sink_write_ledger(s);
	sink_forget(s, f);
}

static void sink_drop(struct sink *s, struct sink_file *f, enum ledger_cause cause)
{
	s->lost_bodies++;
	log_warn("sink.drop", "sink=%s samples=%llu cause=%s", s->config->name,
		 (unsigned long long)f->samples, ledger_cause_names[cause]);
	/* a body that may have arrived counts neither as delivered nor as dropped */
	sink_account(s, f, f->unknown ? &s->ledger.lost_unconfirmed : &s->ledger.dropped[cause]);
}

void sink_not_stored(struct sink *s, const uint64_t samples[WIRE_EVENT_COUNT])
{
	uint64_t n = 0;

	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		if (sink_takes_event(s, e))
			n += samples[e];
	if (n == 0 || s->dead[0] || s->type->tick)
		return;
	s->ledger.taken += n;
	s->ledger.dropped[LEDGER_NOT_STORED] += n;
	sink_write_ledger(s);
}

void sink_last_byte(struct sink_file *f, uint64_t thinned)
{
	struct ledger *l = &f->sink->ledger;

	l->in_spool -= f->samples;
	l->dropped[LEDGER_THINNED] += thinned;
	f->samples -= thinned;
	l->lost_unconfirmed += f->samples;
	l->done_seq = f->seq;
	sink_write_ledger(f->sink);
	spool_remove(f->sink->dfd, f->seq);
	f->left = true;
}

/* Counts @f by the verdict. If its last byte was sent it is counted in lost_unconfirmed already,
 * until the answer shows what became of it. */
static void sink_settle(struct sink *s, struct sink_file *f, enum sink_verdict verdict)
{
	struct ledger *l = &s->ledger;

	if (verdict == SINK_CONFIRMED || verdict == SINK_REFUSED) {
		l->lost_unconfirmed -= f->samples;
		*(verdict == SINK_CONFIRMED ? &l->delivered : &l->dropped[LEDGER_REFUSED]) +=
			f->samples;
		sink_write_ledger(s);
	}
	sink_unlink(s, f);
	free(f);
}

/* ---- sending --------------------------------------------------------------------------------- */

uint64_t sink_random(uint64_t below)
{
	uint64_t n = 0;

	if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != (ssize_t)sizeof(n))
		n = clock_mono_ns();
	return below ? n % below : 0;
}

static void sink_back_off(struct sink *s, uint64_t retry_after_ns)
{
	uint64_t span = BACKOFF_FIRST_NS << (s->failures < 6 ? s->failures : 6), wait;

	s->failures++;
	if (span > BACKOFF_MAX_NS)
		span = BACKOFF_MAX_NS;
	if (retry_after_ns > RETRY_AFTER_MAX)
		retry_after_ns = RETRY_AFTER_MAX;
	/* the random part keeps all nodes from retrying at the same moment */
	wait = retry_after_ns ? retry_after_ns + sink_random(NS_PER_S) : sink_random(span);
	wait += clock_mono_ns();
	if (wait > s->next_try_mono_ns) /* an earlier answer may have asked for a later moment */
		s->next_try_mono_ns = wait;
}

static bool sink_is_old(const struct sink *s, const struct sink_file *f, uint64_t now_real_ns)
{
	return f->begin_real_ns + s->config->spool_age_ns < now_real_ns;
}

/* "Too large" is only a guess if the server just resets the request. */
static enum ledger_cause sink_too_large_cause(const struct sink_file *f)
{
	return f->only_reset ? LEDGER_RESET : LEDGER_TOO_LARGE;
}

/* Splits one body that was too large; only one, because it may take a while, and none while an
 * interval is being taken. */
static void sink_split(struct sink *s)
{
	struct sink_file *f = s->files;
	int r;

	while (f && !f->too_large)
		f = f->next;
	if (!f || s->take)
		return;
	r = f->bytes < SPLIT_MIN ? -EMSGSIZE : take_split(s, f);
	if (r == -EMSGSIZE && f->only_reset && f->resets < RESETS_GIVE_UP) {
		f->too_large = false;
		sink_back_off(s, 0);
	} else if (r < 0)
		sink_drop(s, f,
			  r == -ENOSPC			  ? LEDGER_DISK_FULL
			  : r == -ENOENT || r == -EBADMSG ? LEDGER_SPOOL_LOST
							  : sink_too_large_cause(f));
	loop_timer_set(s->timer, 1, 0);
}

/* Learns the server's limit: it would reject later bodies of this size, too. Both halves of a
 * profile need the same names of frames, so each is larger than half; the limit leaves room for
 * that. */
static void sink_learn(struct sink *s, struct sink_file *f)
{
	uint64_t max = f->bytes / 8 * 5 > SPLIT_MIN / 2 ? f->bytes / 8 * 5 : SPLIT_MIN / 2;

	f->too_large = true;
	s->failures = 0; /* the server answers */
	if (!s->body_max || s->body_max > max)
		s->body_max = max;
}

/* Drops the oldest bodies when the spool is full; those in flight wait for their answer. */
static void sink_bound(struct sink *s)
{
	uint64_t now = clock_real_ns();
	struct sink_file *f = s->files, *next;

	for (; f; f = next) {
		bool full = s->bytes > s->config->spool_bytes || s->n_files > SPOOL_FILES_MAX;

		next = f->next;
		if (!full && !sink_is_old(s, f, now))
			break;
		if (!f->in_flight)
			sink_drop(s, f, full ? LEDGER_SPOOL_FULL : LEDGER_SPOOL_AGE);
	}
}

static unsigned sink_at_once(const struct sink *s)
{
	return s->failures ? 1 : s->type->in_flight_max;
}

static void sink_begin(struct sink *s, struct sink_file *f)
{
	int r;

	f->in_flight = true;
	s->n_in_flight++;
	r = s->type->send(s, f);
	if (r == 0)
		return;
	f->in_flight = false;
	s->n_in_flight--;
	if (r == -EBADMSG || r == -ENOENT || r == -EMSGSIZE) {
		sink_drop(s, f, r == -EMSGSIZE ? LEDGER_TOO_LARGE : LEDGER_SPOOL_LOST);
		return;
	}
	if (r != -EAGAIN)
		snprintf(s->error, sizeof(s->error), "%s", strerror(-r));
	sink_back_off(s, 0);
}

void sink_run(struct sink *s)
{
	struct sink_file *f, *next;

	if (s->dead[0] || !s->type->send)
		return;
	sink_bound(s);
	sink_split(s);
	for (f = s->files; f; f = next) {
		next = f->next;
		if (s->n_in_flight >= sink_at_once(s) || s->next_try_mono_ns > clock_mono_ns())
			break;
		if (!f->in_flight && !f->too_large)
			sink_begin(s, f);
	}
	if (s->files && s->next_try_mono_ns > clock_mono_ns())
		loop_timer_set(s->timer, s->next_try_mono_ns - clock_mono_ns(), 0);
}

static void sink_on_timer(void *userdata)
{
	sink_run(userdata);
}

/* ---- results --------------------------------------------------------------------------------- */

static void sink_test_over(struct sink *s, bool ok, const char *why)
{
	spool_remove(s->dfd, SINK_TEST_SEQ);
	free(s->test);
	s->test = NULL;
	s->upload->on_test(s->upload, s, ok, why);
}

static void sink_set_error(struct sink *s, const char *why)
{
	if (strcmp(s->error, why) != 0)
		log_warn("sink.failed", "sink=%s error=%s", s->config->name, log_str(why));
	snprintf(s->error, sizeof(s->error), "%s", why);
}

void sink_done(struct sink_file *f, enum sink_verdict verdict, uint64_t retry_after_ns,
	       const char *why)
{
	struct sink *s = f->sink;

	if (f->is_test) {
		sink_test_over(s, verdict == SINK_CONFIRMED, why);
		return;
	}
	f->in_flight = false;
	f->request = NULL;
	s->n_in_flight--;
	if (verdict == SINK_CONFIRMED) {
		if (s->failures)
			log_info("sink.works", "sink=%s", s->config->name);
		s->failures = 0;
		s->error[0] = '\0';
		if (f->left)
			sink_settle(s, f, verdict);
		else
			sink_account(s, f, &s->ledger.delivered);
	} else {
		sink_set_error(s, why);
		if (f->left)
			sink_settle(s, f, verdict);
		else if (verdict == SINK_REFUSED)
			sink_drop(s, f, LEDGER_REFUSED);
		else if (verdict == SINK_TOO_LARGE && (s->type->part || s->type->halve))
			sink_learn(s, f);
		else if (verdict == SINK_TOO_LARGE)
			sink_drop(s, f, sink_too_large_cause(f));
		else if (verdict == SINK_DAMAGED)
			sink_drop(s, f, LEDGER_SPOOL_LOST);
		else {
			f->unknown |= verdict == SINK_UNKNOWN;
			sink_back_off(s, retry_after_ns);
		}
	}
	/* later, because a type may be iterating over its own list now */
	loop_timer_set(s->timer, 1, 0);
}

/* ---- a test ---------------------------------------------------------------------------------- */

/* A profile of one sample, whose names cannot be mistaken for those of a JVM. */
static int sink_test_profile(struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	int r = profile_new(&p);

	if (r < 0)
		return r;
	const struct profile_process q = { .pid = (uint32_t)getpid(),
					   .name = profile_string(p, "kindling-sink-test") };
	const struct profile_thread t = { .process = profile_process(p, &q),
					  .tid = (uint32_t)getpid(),
					  .name = profile_string(p, "test") };
	const struct profile_frame f = { .kind = WIRE_KIND_INTERPRETED,
					 .line = -1,
					 .class_name = profile_string(p, "kindling.Sink"),
					 .method = profile_string(p, "test") };
	const struct profile_accounts accounts = { .of[WIRE_EVENT_CPU] = { 1, NS_PER_MS, 1,
									   NS_PER_MS, 0, 0 } };

	p->end_real_ns = clock_real_ns();
	p->begin_real_ns = p->end_real_ns - NS_PER_S;
	p->interval[WIRE_EVENT_CPU] = NS_PER_MS;
	profile_add(p, profile_thread(p, &t), profile_node(p, 0, profile_intern_frame(p, &f)), 1,
		    NS_PER_MS);
	profile_add_accounts(p, 0, &accounts);
	*ret = TAKE_PTR(p);
	return 0;
}

int sink_test(struct sink *s)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	unsigned events = s->events;
	struct sink_interval in = { 0 };
	int r;

	if (s->dead[0]) {
		s->upload->on_test(s->upload, s, false, s->dead);
		return 0;
	}
	if (s->type->test)
		return s->type->test(s);
	if (s->test)
		return -EBUSY;
	r = sink_test_profile(&p);
	s->test = r == 0 ? calloc(1, sizeof(*s->test)) : NULL;
	if (!s->test)
		return -ENOMEM;
	*s->test = (struct sink_file){ .sink = s, .seq = SINK_TEST_SEQ, .is_test = true };
	in = (struct sink_interval){ .begin_real_ns = p->begin_real_ns,
				     .end_real_ns = p->end_real_ns,
				     .profile = p,
				     .process = &p->processes[0],
				     .node = s->upload->config->node };
	s->events = 1u << WIRE_EVENT_CPU;
	s->test_encodes = true;
	r = s->type->encode(s, &in);
	s->test_encodes = false;
	s->events = events;
	if (r == 0)
		r = s->type->send(s, s->test);
	if (r < 0)
		sink_test_over(s, false, r == -EAGAIN ? s->error : strerror(-r));
	return 0;
}

/* ---- adding to the spool --------------------------------------------------------------------- */

static void sink_append(struct sink *s, struct sink_file *f)
{
	struct sink_file **at = &s->files;

	while (*at)
		at = &(*at)->next;
	*at = f;
	s->n_files++;
	s->bytes += f->bytes;
}

static struct sink_file *sink_file_new(struct sink *s, uint64_t seq, const struct spool_header *h)
{
	struct sink_file *f = calloc(1, sizeof(*f));

	if (f)
		*f = (struct sink_file){ .sink = s,
					 .seq = seq,
					 .samples = h->samples,
					 .bytes = sizeof(*h) + h->body_len,
					 .begin_real_ns = h->begin_real_ns };
	return f;
}

int sink_take_in(struct sink *s, uint64_t seq, const struct spool_header *h, bool unknown)
{
	struct sink_file *f = sink_file_new(s, seq, h);

	if (!f)
		return -ENOMEM;
	f->unknown = unknown;
	sink_append(s, f);
	return 0;
}

int sink_put_now(struct sink *s, const struct sink_interval *in, const char *key,
		 const char *content_type, const void *body, size_t len, uint64_t samples)
{
	uint64_t seq = s->ledger.next_seq;
	struct ledger l = s->ledger;
	struct spool_header h;
	int r = sink_spool(s, seq, in, key, content_type, body, len, samples, &h);

	l.next_seq++;
	l.taken += samples;
	l.in_spool += samples;
	if (r == 0 && fsync(s->dfd) < 0)
		r = -errno;
	if (r == 0)
		r = ledger_write(s->ledger_fd, &l, true);
	if (r == 0)
		r = sink_take_in(s, seq, &h, false);
	s->ledger = l;
	if (r < 0) {
		s->ledger.in_spool -= samples;
		s->ledger.dropped[r == -ENOMEM ? LEDGER_NO_MEMORY : LEDGER_DISK_FULL] += samples;
		sink_write_ledger(s);
		spool_remove(s->dfd, seq);
	}
	return r;
}

int sink_spool(struct sink *s, uint64_t seq, const struct sink_interval *in, const char *key,
	       const char *content_type, const void *body, size_t len, uint64_t samples,
	       struct spool_header *h)
{
	memset(h, 0, sizeof(*h));
	h->begin_real_ns = in->begin_real_ns;
	h->end_real_ns = in->end_real_ns;
	h->samples = samples;
	if (in->process) {
		h->pid = in->process->pid;
		h->start_time = in->process->start_time;
		snprintf(h->target, sizeof(h->target), "%s",
			 in->profile->strings[in->process->name]);
	}
	h->events = in->events;
	h->word = in->word;
	h->part = in->part;
	snprintf(h->key, sizeof(h->key), "%s", key);
	snprintf(h->content_type, sizeof(h->content_type), "%s", content_type);
	return spool_write(s->dfd, seq, h, body, len);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* Brings spool and ledger together after the start: a file that the ledger does not count is
 * removed, one that it counts but that is missing is counted as lost. */
static void sink_load(struct sink *s)
{
	CLEANUP(freep) uint64_t *list = NULL;
	uint64_t found = 0;
	size_t n;

	list = spool_list(s->dfd, &n);
	for (size_t i = 0; list && i < n; i++) {
		struct spool_header h;
		int fd;

		fd = list[i] < s->ledger.next_seq && list[i] != s->ledger.done_seq
			     ? spool_open(s->dfd, list[i], false, &h)
			     : -ENOENT;
		if (fd < 0 || found + h.samples > s->ledger.in_spool ||
		    sink_take_in(s, list[i], &h, false) < 0)
			spool_remove(s->dfd, list[i]);
		else
			found += h.samples;
		fd_close(fd);
	}
	s->ledger.dropped[LEDGER_SPOOL_LOST] += s->ledger.in_spool - found;
	s->ledger.in_spool = found;
}

static int sink_open_spool(struct sink *s, int spool_dfd)
{
	uint64_t interval = s->config->interval_ns;
	bool is_new = false;

	if (mkdirat(spool_dfd, s->config->name, 0750) < 0 && errno != EEXIST)
		return -errno;
	s->dfd =
		openat(spool_dfd, s->config->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dfd < 0)
		return -errno;
	s->ledger_fd = ledger_open(s->dfd, &s->ledger, &is_new);
	if (s->ledger_fd < 0)
		return s->ledger_fd;
	if (s->ledger.cursor_ns == 0) /* a new sink begins with the present */
		s->ledger.cursor_ns = clock_real_ns() / interval * interval;
	sink_load(s);
	sink_write_ledger(s);
	return 0;
}

static int sink_open_type(struct sink *s, char *why, size_t why_size)
{
	s->type = sink_types[s->config->type];
	/* other people's servers get times off the CPU only where the settings name them */
	s->events = ((1u << WIRE_EVENT_COUNT) - 1) & ~(1u << WIRE_EVENT_OFFCPU);
	if (s->config->events[0] && !report_events_by_name(s->config->events, &s->events)) {
		snprintf(why, why_size, "events: %s is not known", s->config->events);
		return -EINVAL;
	}
	if (s->type)
		return s->type->open(s, why, why_size);
	snprintf(why, why_size, "this build of kindling has no sink of type %s",
		 sink_type_names[s->config->type]);
	return -ENOTSUP;
}

int sink_new(struct upload *u, const struct config_sink *c, int spool_dfd,
	     const struct sink_secrets *secrets, struct sink **ret, char *why, size_t why_size)
{
	struct sink *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->upload = u;
	s->config = c;
	s->secrets = *secrets;
	s->dfd = s->ledger_fd = -1;
	r = loop_timer_add(u->loop, UINT64_MAX, 0, sink_on_timer, s, &s->timer);
	if (r == 0)
		r = sink_open_spool(s, spool_dfd);
	if (r < 0) {
		snprintf(why, why_size, "its spool: %s", strerror(-r));
		sink_free(s);
		return r;
	}
	/* a sink that cannot start still exists, with the reason in status: its spool is kept */
	r = sink_open_type(s, s->dead, sizeof(s->dead));
	if (r < 0 && !s->dead[0])
		snprintf(s->dead, sizeof(s->dead), "%s", strerror(-r));
	if (s->dead[0])
		log_err("sink.refused", "sink=%s error=%s", c->name, log_str(s->dead));
	*ret = s;
	return 0;
}

bool sink_is_gone(const struct sink *s)
{
	struct stat st;

	return fstat(s->dfd, &st) == 0 && st.st_nlink == 0;
}

struct sink *sink_free(struct sink *s)
{
	if (!s)
		return NULL;
	take_cancel(s);
	if (s->test && s->type)
		s->type->cancel(s, s->test);
	free(s->test);
	while (s->files) {
		struct sink_file *f = s->files;

		if (f->in_flight)
			s->type->cancel(s, f);
		s->files = f->next;
		free(f);
	}
	if (s->type && s->type->close)
		s->type->close(s);
	loop_timer_free(s->timer);
	fd_close(s->ledger_fd);
	fd_close(s->dfd);
	free(s->secrets.ca);
	free(s->secrets.cert);
	free(s->secrets.key);
	explicit_bzero(&s->secrets, sizeof(s->secrets));
	free(s);
	return NULL;
}
