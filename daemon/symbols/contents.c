/*
 * The contents of files, and their tables. A table is a file in the directory whose name is its
 * content's key. Tables that are equal are one file with several names, mapped once. A pruned table
 * is unmapped, too: so tables take no more than the directory's bytes.
 */
#include "daemon/symbols/symbols_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "daemon/ground/hash.h"
#include "daemon/ground/log.h"
#include "daemon/symbols/tables_dir.h"

/* ---- mapped tables --------------------------------------------------------------------------- */

static void names_unref(struct symbols *s, struct names *n)
{
	struct names **at = &s->names;

	if (!n || --n->refs)
		return;
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	munmap(n->bytes, n->len);
	free(n);
}

/* Hashes eight bytes at a time; tables with equal hashes are then compared. */
static uint64_t contents_hash_of(const uint8_t *p, size_t len)
{
	uint64_t h = len, word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	return hash_bytes(h, p, len);
}

static struct names *names_of_inode(struct symbols *s, ino_t ino)
{
	struct names *n = s->names;

	while (n && n->ino != ino)
		n = n->next;
	return n;
}

/* Another mapped table with the same bytes; NULL = there is none. */
static struct names *names_equal_to(struct symbols *s, const struct names *it)
{
	struct names *n = s->names;

	while (n && (n == it || n->hash != it->hash || n->len != it->len ||
		     memcmp(n->bytes, it->bytes, it->len) != 0))
		n = n->next;
	return n;
}

/* Maps the table in @fd and takes a reference; NULL = it is not a table. */
static struct names *names_map(struct symbols *s, int fd)
{
	struct symbol_table table;
	struct names *n;
	struct stat st;
	uint64_t hash;
	void *p;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > TABLE_BYTES_MAX)
		return NULL;
	n = names_of_inode(s, st.st_ino);
	if (n) {
		n->refs++;
		return n;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	n = table_check(p, (size_t)st.st_size, &table) == 0 ? calloc(1, sizeof(*n)) : NULL;
	if (!n) {
		munmap(p, (size_t)st.st_size);
		return NULL;
	}
	hash = contents_hash_of(p, (size_t)st.st_size);
	*n = (struct names){ s->names, 1, p, (size_t)st.st_size, hash, st.st_ino, table, false };
	s->names = n;
	return n;
}

/* Drops a table's pages from memory. Checking it has read all of it, and each fault maps sixteen
 * pages; but lookups need few. */
static void give_back(struct names *n)
{
	(void)madvise(n->bytes, n->len, MADV_DONTNEED);
	n->looked_at = false;
}

void symbols_give_back(struct symbols *s)
{
	for (struct names *n = s->names; n; n = n->next)
		if (n->looked_at)
			give_back(n);
}

const char *content_find(struct content *c, uint64_t offset)
{
	c->names->looked_at = true;
	return table_find(&c->names->table, offset);
}

/* ---- the directory --------------------------------------------------------------------------- */

static struct content **bucket_of(struct symbols *s, const char *key)
{
	return &s->contents[tenant_number(key) % CONTENT_BUCKETS];
}

static struct content *content_with(struct symbols *s, const char *key)
{
	struct content *c = *bucket_of(s, key);

	while (c && strcmp(c->key, key) != 0)
		c = c->next;
	return c;
}

static bool in_use(void *userdata, const char *name)
{
	const struct content *c = content_with(userdata, name);

	return c && c->state == READY;
}

static void on_pruned(void *userdata, const char *name)
{
	struct content *c = content_with(userdata, name);

	if (!c || c->state != READY)
		return;
	names_unref(c->owner, c->names);
	c->names = NULL;
	c->state = NONE;
}

/* A table of @len bytes was added: removes others if they are too many. */
static void contents_prune(struct symbols *s, size_t len)
{
	const struct tables_use use = { in_use, on_pruned, s };

	s->counts.table_bytes += len < TABLES_DIR_BYTES_MIN ? TABLES_DIR_BYTES_MIN : len;
	s->counts.tables++;
	if (s->counts.table_bytes > s->max_bytes)
		tables_dir_prune(s->dfd, s->max_bytes, &use, &s->counts.table_bytes,
				 &s->counts.tables);
}

bool content_open(struct content *c)
{
	struct symbols *s = c->owner;
	CLEANUP(fd_closep) int fd = openat(s->dfd, c->key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct names *n = fd < 0 ? NULL : names_map(s, fd);

	if (!n)
		return false;
	give_back(n);
	if (n->table.flags & TABLE_EXPORTED_ONLY) {
		/* an earlier daemon found no debug file; it may have been installed since */
		names_unref(s, n);
		return false;
	}
	(void)futimens(fd, NULL); /* the time of its last use, by which tables are pruned */
	c->names = n;
	c->state = READY;
	return true;
}

/* Another content has an equal table: that file gets one more name, and @temp is removed. */
static bool contents_share(struct content *c, const struct names *n, const char *temp)
{
	struct symbols *s = c->owner;
	const char *key = NULL;

	for (unsigned i = 0; i < CONTENT_BUCKETS && !key; i++)
		for (const struct content *o = s->contents[i]; o && !key; o = o->next)
			key = o->names == n ? o->key : NULL;
	if (!key)
		return false;
	(void)unlinkat(s->dfd, c->key, 0);
	if (linkat(s->dfd, key, s->dfd, c->key, 0) < 0)
		return false;
	(void)unlinkat(s->dfd, temp, 0);
	return true;
}

bool content_read(struct content *c, int fd, const char *temp)
{
	struct symbols *s = c->owner;
	struct names *n = names_map(s, fd), *equal = NULL;

	if (!n)
		return false;
	equal = names_equal_to(s, n);
	give_back(n);
	if (equal && contents_share(c, equal, temp)) {
		equal->refs++;
		names_unref(s, n);
		c->names = equal;
		c->state = READY;
		return true;
	}
	if (renameat(s->dfd, temp, s->dfd, c->key) < 0) {
		names_unref(s, n);
		return false;
	}
	c->names = n;
	c->state = READY;
	contents_prune(s, n->len);
	return true;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

void content_forget_input(struct content *c)
{
	c->file_fd = fd_close(c->file_fd);
	c->root_fd = fd_close(c->root_fd);
	free(c->path);
	c->path = NULL;
}

struct content *content_ref(struct symbols *s, struct tenant *t, const char *key)
{
	struct content *c = content_with(s, key);

	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		c->owner = s;
		c->tenant = t;
		c->file_fd = c->root_fd = -1;
		snprintf(c->key, sizeof(c->key), "%s", key);
		c->next = *bucket_of(s, key);
		*bucket_of(s, key) = c;
		t->contents++;
	}
	c->refs++;
	return c;
}

void content_unref(struct content *c)
{
	struct content **at;

	if (!c || --c->refs)
		return;
	for (at = bucket_of(c->owner, c->key); *at != c; at = &(*at)->next)
		;
	*at = c->next;
	if (c->state == WANTED && c->file_fd >= 0) {
		c->owner->waiting--;
		c->tenant->waiting--;
	}
	if (c->child)
		child_abandon(c->child);
	content_forget_input(c);
	names_unref(c->owner, c->names);
	c->tenant->contents--;
	free(c);
}
