/*
 * Windows that are not closed yet. As soon as a second is over, its events are appended to the
 * journal of their window, <window>.jnl; if they change they are appended again, and the last
 * version counts. A record has only the names that no earlier one of the journal has. Nothing is
 * synced: this protects against the death of the daemon, not of the
 * host. Once the window is in the store its journal is removed. The window's records hold the
 * journal's number: so when the store is opened, a leftover journal is either found to be in the
 * store, or becomes a window.
 */
#include "daemon/store/store_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"

#define WINDOW_NS   (10 * NS_PER_S)
#define SECONDS_MAX 40 /* in one window; more than ten because targets choose the times */
#define FILES_MAX   64
#define BYTES_MAX   (64ul << 20)

static void journal_name(uint64_t window, char buf[STORE_NAME_SIZE])
{
	snprintf(buf, STORE_NAME_SIZE, "%llu.jnl", (unsigned long long)window);
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct journal *find_journal(struct store *s, uint64_t window)
{
	for (int i = 0; i < JOURNALS; i++)
		if (s->journals[i].id && s->journals[i].window == window)
			return &s->journals[i];
	return NULL;
}

static struct journal *oldest_place(struct store *s)
{
	struct journal *j = &s->journals[0];

	for (int i = 1; i < JOURNALS; i++)
		if (!s->journals[i].id || (j->id && s->journals[i].window < j->window))
			j = &s->journals[i];
	return j;
}

static void close_journal(struct journal *j)
{
	if (j->id)
		fd_close(j->fd);
	*j = (struct journal){ .fd = -1 };
}

static int open_journal(struct store *s, uint64_t window, struct journal **ret)
{
	struct journal *j = find_journal(s, window);
	char name[STORE_NAME_SIZE];
	uint64_t id = 0;

	if (j) {
		*ret = j;
		return 0;
	}
	if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id) || !id)
		return -EAGAIN;
	(void)store_revive(s);
	j = oldest_place(s);
	close_journal(j); /* its window was lost on the way to the store: the file is kept */
	journal_name(window, name);
	/* an earlier process's window of this time is in the store already: the file may be
	 * overwritten */
	j->fd = openat(s->dfd, name,
		       O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (j->fd < 0)
		return -errno;
	j->window = window;
	j->id = id;
	*ret = j;
	return 0;
}

int store_journal(struct store *s, uint64_t begin_real_ns, const uint8_t *raw, size_t len)
{
	uint64_t most = s->max_bytes / 4 < BYTES_MAX ? s->max_bytes / 4 : BYTES_MAX;
	CLEANUP(freep) uint8_t *record = NULL;
	struct journal *j = NULL;
	size_t record_len;
	ssize_t n;
	int r = open_journal(s, begin_real_ns / WINDOW_NS, &j);

	if (r == 0) {
		const struct header h = { .begin_real_ns = begin_real_ns,
					  .end_real_ns = begin_real_ns,
					  .journal = j->id };

		r = record_pack(&h, raw, len, &record, &record_len);
	}
	if (r < 0)
		return r;
	if (j->bytes + record_len > most)
		return -E2BIG;
	n = write(j->fd, record, record_len);
	if (n == (ssize_t)record_len) {
		j->bytes += record_len;
		return 0;
	}
	r = n < 0 ? -errno : -ENOSPC;
	(void)!ftruncate(j->fd, (off_t)j->bytes);
	return r;
}

uint64_t journal_of(struct store *s, uint64_t begin_real_ns)
{
	const struct journal *j = find_journal(s, begin_real_ns / WINDOW_NS);

	return j ? j->id : 0;
}

void journal_end(struct store *s, uint64_t begin_real_ns)
{
	struct journal *j = find_journal(s, begin_real_ns / WINDOW_NS);
	char name[STORE_NAME_SIZE];

	if (!j)
		return;
	journal_name(j->window, name);
	(void)unlinkat(s->dfd, name, 0);
	close_journal(j);
}

/* The bytes of a slice in a journal: the number of processes, each one's tenant, the profile. */
int store_journal_bytes(const struct profile *slice, uint8_t **ret, size_t *ret_len)
{
	size_t head = sizeof(uint32_t) + slice->n_processes * sizeof(uint64_t), len;
	CLEANUP(freep) uint8_t *encoded = NULL;
	uint8_t *p;
	int r = profile_encode_slice(slice, &encoded, &len);

	if (r < 0)
		return r;
	/* moved, not copied: another buffer of its size costs more page faults than bytes */
	p = realloc(encoded, head + len);
	if (!p) {
		profile_slice_lost(slice);
		return -ENOMEM;
	}
	encoded = NULL;
	memmove(p + head, p, len);
	memcpy(p, &slice->n_processes, sizeof(uint32_t));
	for (uint32_t i = 0; i < slice->n_processes; i++)
		memcpy(p + sizeof(uint32_t) + i * sizeof(uint64_t), &slice->processes[i].tenant,
		       sizeof(uint64_t));
	*ret = p;
	*ret_len = head + len;
	return 0;
}

/* ---- reading back ---------------------------------------------------------------------------- */

struct second {
	struct header header;
	off_t at;
};

/* Finds the last version of each second. Returns their number, in the order of their arrival. */
static unsigned find_seconds(int fd, struct second seconds[SECONDS_MAX])
{
	unsigned n = 0, i;
	struct header h;

	for (off_t at = 0; record_next(fd, &at, &h); at = record_end(&h, at)) {
		uint8_t *data = NULL;

		if (record_read(fd, at, &h, &data) < 0)
			continue; /* torn: the version before it counts */
		free(data);
		for (i = 0; i < n; i++)
			if (seconds[i].header.begin_real_ns == h.begin_real_ns)
				break;
		if (i == SECONDS_MAX)
			continue;
		seconds[i] = (struct second){ h, at };
		n = i == n ? n + 1 : n;
	}
	return n;
}

/* *ret is valid until the next call. */
static int decode_slice(struct profile_slices *slices, const uint8_t *raw, size_t len,
			struct profile **ret)
{
	uint32_t n;
	int r;

	if (len < sizeof(n))
		return -EBADMSG;
	memcpy(&n, raw, sizeof(n));
	if (n > (len - sizeof(n)) / sizeof(uint64_t))
		return -EBADMSG;
	r = profile_slices_read(slices, raw + sizeof(n) + n * sizeof(uint64_t),
				len - sizeof(n) - n * sizeof(uint64_t), ret);
	for (uint32_t i = 0; r == 0 && i < n && i < (*ret)->n_processes; i++) {
		uint64_t tenant;

		memcpy(&tenant, raw + sizeof(n) + i * sizeof(tenant), sizeof(tenant));
		profile_set_tenant_of(*ret, i, tenant);
	}
	return r;
}

/* Reads the record at @at, whose names later ones need; adds its events if it @counts. */
static int add_record(struct profile *window, struct profile_slices *slices, int fd, off_t at,
		      const struct header *h, bool counts)
{
	CLEANUP(freep) uint8_t *data = NULL;
	CLEANUP(freep) uint8_t *raw = NULL;
	struct profile *slice;
	int r = record_read(fd, at, h, &data);

	if (r == 0)
		r = record_inflate(h, data, &raw);
	if (r == 0)
		r = decode_slice(slices, raw, h->raw_len, &slice);
	if (r == 0 && counts)
		r = profile_merge(window, slice, NULL);
	return r == -EBADMSG ? 0 : r;
}

static bool is_last(const struct second *seconds, unsigned n, off_t at)
{
	for (unsigned i = 0; i < n; i++)
		if (seconds[i].at == at)
			return true;
	return false;
}

static int add_records(struct profile *window, int fd, const struct second *seconds, unsigned n)
{
	CLEANUP(profile_slices_freep) struct profile_slices *slices = NULL;
	struct header h;
	int r = profile_slices_new(&slices);

	for (off_t at = 0; r == 0 && record_next(fd, &at, &h); at = record_end(&h, at))
		r = add_record(window, slices, fd, at, &h, is_last(seconds, n, at));
	return r;
}

/* Is a window of journal @id in the store? Only segments of its time are searched. */
static bool is_stored(struct store *s, uint64_t id, uint64_t window)
{
	uint64_t slot = window * WINDOW_NS / SLOT_NS;
	uint64_t first = slot / SLOTS * PARTS_MAX + slot % SLOTS * SLOT_PARTS;
	bool found = false;

	for (uint64_t part = 0; part < SLOT_PARTS && !found; part++) {
		CLEANUP(fd_closep)
		int fd = store_open_segment(s, first + part, O_RDONLY);
		struct header h;

		if (fd < 0)
			break;
		for (off_t at = 0; !found && record_next(fd, &at, &h); at = record_end(&h, at))
			found = h.journal == id;
	}
	return found;
}

/* Makes a window of the journal unless the store has it. 1 = made, 0 = not, or -errno. */
static int journal_recover_window(struct store *s, int fd, uint64_t window)
{
	CLEANUP(freep) struct second *seconds = calloc(SECONDS_MAX, sizeof(*seconds));
	CLEANUP(profile_freep) struct profile *p = NULL;
	unsigned n = seconds ? find_seconds(fd, seconds) : 0;
	int r = seconds ? profile_new(&p) : -ENOMEM;

	if (r < 0 || !n || is_stored(s, seconds[0].header.journal, window))
		return r;
	r = add_records(p, fd, seconds, n);
	if (r < 0 || !p->begin_real_ns)
		return r;
	r = store_append_of(s, p, seconds[0].header.journal);
	return r < 0 ? r : 1;
}

static int store_journal_by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static unsigned list_journals(struct store *s, uint64_t windows[FILES_MAX])
{
	int fd = openat(s->dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	unsigned n = 0;

	while (dir && n < FILES_MAX && (e = readdir(dir))) {
		char *end, name[STORE_NAME_SIZE];

		windows[n] = strtoull(e->d_name, &end, 10);
		journal_name(windows[n], name);
		n += strcmp(name, e->d_name) == 0 && windows[n] < UINT64_MAX / WINDOW_NS;
	}
	if (dir)
		closedir(dir);
	else
		fd_close(fd);
	qsort(windows, n, sizeof(*windows), store_journal_by_number);
	return n;
}

static bool is_past(const struct store *s, uint64_t window)
{
	uint64_t now = clock_real_ns(), end = (window + 1) * WINDOW_NS;

	return end < now && now - end > s->retention_ns;
}

uint64_t journal_recover(struct store *s)
{
	uint64_t windows[FILES_MAX], recovered = 0;
	unsigned n = list_journals(s, windows);

	for (unsigned i = 0; i < n; i++) {
		char name[STORE_NAME_SIZE];
		CLEANUP(fd_closep) int fd = -1;

		journal_name(windows[i], name);
		fd = openat(s->dfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && record_is_foreign(fd) && !is_past(s, windows[i]))
			continue; /* of another version of kindling, which may be installed again */
		if (fd >= 0 && journal_recover_window(s, fd, windows[i]) > 0)
			recovered++;
		(void)unlinkat(s->dfd, name, 0);
	}
	return recovered;
}

void journal_close_all(struct store *s)
{
	for (int i = 0; i < JOURNALS; i++)
		close_journal(&s->journals[i]);
}
