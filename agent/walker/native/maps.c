/*
 * See maps.h. A mapping is identified by start, end, file and offset. A mapping that is still there
 * in the next pass keeps its rows and its generation. One that is gone is freed in a later pass,
 * when no handler can be reading it.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "agent/base/guard.h"
#include "agent/walker/native/elf_image.h"
#include "agent/walker/native/maps.h"
#include "agent/walker/native/unwind.h"

#define SECTION_MAX   (32u << 20) /* bytes of one .eh_frame */
#define TEXT_LINE_MAX 4608 /* PATH_MAX and the columns before the path */

struct mapping {
	struct walk_mapping shown; /* shown.path is owned */
	uint64_t device, inode;
	uint64_t base; /* address of the ELF header */
	struct cfi_table *rows; /* owned; NULL = none */
	bool musl;
	bool no_room; /* there was no room for its rows */
	bool seen; /* found in the current pass */
	struct mapping *next; /* next in the list of retired mappings */
};

static struct {
	struct mapping *now[MAPS_MAX];
	uint32_t n;
	struct mapping *retired; /* unmapped, but a handler may still read their rows */
	struct unwind_table *retired_table;
	uint64_t adds, subs; /* the dynamic linker's counters of loads and unloads at the last
			      * pass */
	uint32_t generation;
	uint32_t left_out;
	uint64_t bytes;
	uint64_t stays_low, stays_high; /* see maps_stays() */
} maps;

static bool take_hex(const char **p, const char *end, uint64_t *ret)
{
	const char *start = *p;

	for (*ret = 0; *p < end; (*p)++) {
		char c = **p;

		if (c >= '0' && c <= '9')
			*ret = *ret << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*ret = *ret << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	return *p > start && *p - start <= 16;
}

static bool take_char(const char **p, const char *end, char c)
{
	if (*p >= end || **p != c)
		return false;
	(*p)++;
	return true;
}

static bool take_decimal(const char **p, const char *end, uint64_t *ret)
{
	const char *start = *p;

	for (*ret = 0; *p < end && **p >= '0' && **p <= '9'; (*p)++)
		*ret = *ret * 10 + (uint64_t)(**p - '0');
	return *p > start && *p - start <= 19;
}

bool maps_parse_line(const char *line, size_t len, struct maps_line *ret)
{
	const char *p = line, *end = line + len;
	uint64_t minor;

	if (!take_hex(&p, end, &ret->start) || !take_char(&p, end, '-') ||
	    !take_hex(&p, end, &ret->end) || !take_char(&p, end, ' ') || end - p < 5)
		return false;
	ret->executable = p[2] == 'x' && p[0] == 'r';
	p += 4;
	if (!take_char(&p, end, ' ') || !take_hex(&p, end, &ret->offset) ||
	    !take_char(&p, end, ' ') || !take_hex(&p, end, &ret->device) ||
	    !take_char(&p, end, ':') || !take_hex(&p, end, &minor) || !take_char(&p, end, ' ') ||
	    !take_decimal(&p, end, &ret->inode) || ret->end <= ret->start)
		return false;
	ret->device = ret->device << 32 | minor;
	while (p < end && *p == ' ')
		p++;
	ret->path = p;
	ret->path_len = (uint32_t)(end - p);
	return true;
}

static bool has_code(const struct maps_line *line)
{
	if (!line->executable || !line->path_len)
		return false;
	return line->path[0] == '/' || (line->path_len == 6 && !memcmp(line->path, "[vdso]", 6));
}

static uint64_t bytes_of_rows(const struct mapping *m)
{
	return m->rows ? m->rows->bytes : 0;
}

static void mapping_free(struct mapping *m)
{
	if (!m)
		return;
	maps.bytes -= sizeof(*m) + strlen(m->shown.path) + 1 + bytes_of_rows(m);
	if (m->rows)
		munmap(m->rows, m->rows->bytes);
	free((char *)m->shown.path);
	free(m);
}

static struct mapping *mapping_new(const struct maps_line *line, uint64_t base)
{
	struct mapping *m = calloc(1, sizeof(*m));
	char *path = malloc(line->path_len + 1);

	if (!m || !path) {
		free(m);
		free(path);
		return NULL;
	}
	memcpy(path, line->path, line->path_len);
	path[line->path_len] = '\0';
	m->shown.start = line->start;
	m->shown.end = line->end;
	m->shown.file_offset = line->offset;
	m->shown.path = path;
	m->device = line->device;
	m->inode = line->inode;
	m->base = base;
	m->musl = strstr(path, "/ld-musl-") || strstr(path, "/libc.musl-") ||
		  strstr(path, "-linux-musl/libc.so"); /* Debian's */
	maps.bytes += sizeof(*m) + line->path_len + 1;
	return m;
}

static void *map_memory(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Copies [from, to) of the process; NULL if the range is implausible or unmapped. Freed by
 * munmap. */
static uint8_t *copy_range(struct safe_copy *copy, uint64_t from, uint64_t to)
{
	uint8_t *bytes;

	if (!from || to <= from || to - from > SECTION_MAX)
		return NULL;
	bytes = map_memory(to - from);
	if (bytes && safe_copy(copy, bytes, from, to - from) < 0) {
		munmap(bytes, to - from);
		return NULL;
	}
	return bytes;
}

static bool maps_is_permanent(uint64_t from, uint64_t to)
{
	return from >= maps.stays_low && to > from && to <= maps.stays_high;
}

/* Bytes to read, to be given back by return_range(): a copy, or the original if it is never
 * unmapped. */
static const uint8_t *borrow_range(struct safe_copy *copy, uint64_t from, uint64_t to)
{
	return maps_is_permanent(from, to) ? (const uint8_t *)(uintptr_t)from
					   : copy_range(copy, from, to);
}

static void return_range(const struct cfi_bytes *range)
{
	if (range->bytes && !maps_is_permanent(range->address, range->address + range->len))
		munmap((void *)range->bytes, range->len);
}

void maps_stays(uint64_t low, uint64_t high)
{
	maps.stays_low = low;
	maps.stays_high = high;
}

static uint64_t rows_bytes(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < maps.n; i++)
		sum += bytes_of_rows(maps.now[i]);
	for (const struct mapping *m = maps.retired; m; m = m->next)
		sum += bytes_of_rows(m);
	return sum;
}

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

/* Builds the rows in as much memory as they may need, then unmaps the rest. */
static int build_rows(struct mapping *m, const struct cfi_bytes *header,
		      const struct cfi_bytes *frame)
{
	uint64_t used = rows_bytes();
	size_t room = used < MAPS_ROWS_MAX ? whole_pages(MAPS_ROWS_MAX - used) : 0, keep = 0;
	struct cfi_table *table = room ? map_memory(room) : NULL;
	long n = -ENOSPC;

	if (table)
		n = cfi_build(header, frame, m->base, table, room);
	if (n > 0) {
		m->rows = table;
		maps.bytes += (uint64_t)n;
		keep = whole_pages((size_t)n);
	}
	if (table && keep < room)
		munmap((uint8_t *)table + keep, room - keep);
	return n < 0 ? (int)n : 0;
}

static int load_rows(struct safe_copy *copy, const struct elf_image *image, struct mapping *m)
{
	const Elf64_Phdr *segment = elf_image_segment(image, PT_GNU_EH_FRAME);
	struct cfi_bytes header = { 0 }, frame = { 0 };
	uint64_t frame_end = 0;
	int r = -ENOENT;

	if (!segment)
		return -ENOENT;
	header.address = image->bias + segment->p_vaddr;
	header.len = segment->p_memsz;
	header.bytes = borrow_range(copy, header.address, header.address + header.len);
	if (!header.bytes)
		return -EFAULT;
	if (cfi_frame_address(&header, &frame.address) == 0)
		frame_end = elf_image_segment_end(image, frame.address);
	frame.len = frame_end > frame.address ? frame_end - frame.address : 0;
	frame.bytes = borrow_range(copy, frame.address, frame_end);
	if (frame.bytes)
		r = build_rows(m, &header, &frame);
	return_range(&frame);
	return_range(&header);
	return r;
}

/* Reads the build-id and the rows of a new mapping. A file with several executable segments gets
 * the same rows for each, which is rare enough to be acceptable. */
static void load_image(struct safe_copy *copy, struct mapping *m)
{
	struct elf_image image;

	if (!m->base || elf_image_read(copy, m->base, &image) < 0)
		return;
	memcpy(m->shown.build_id, image.build_id, image.build_id_len);
	m->shown.build_id_len = image.build_id_len;
	m->no_room = load_rows(copy, &image, m) == -ENOSPC;
}

static bool maps_same(const struct mapping *m, const struct maps_line *line)
{
	return m->shown.start == line->start && m->shown.end == line->end &&
	       m->shown.file_offset == line->offset && m->device == line->device &&
	       m->inode == line->inode && strlen(m->shown.path) == line->path_len &&
	       !memcmp(m->shown.path, line->path, line->path_len);
}

/* One pass over /proc/self/maps. */
struct pass {
	struct mapping *found[MAPS_MAX];
	uint32_t n, fresh, left_out;
	uint64_t base, device, inode; /* the last file whose first page was found */
};

static struct mapping *find_known(const struct maps_line *line)
{
	for (uint32_t i = 0; i < maps.n; i++)
		if (!maps.now[i]->seen && maps_same(maps.now[i], line))
			return maps.now[i];
	return NULL;
}

static bool mapping_stays(const struct mapping *m)
{
	return maps_is_permanent(m->shown.start, m->shown.end);
}

/* Leaves out the mapping with the lowest address, unless that is permanent: usually it was loaded
 * last. */
static void maps_make_room(struct pass *pass)
{
	uint32_t at = mapping_stays(pass->found[0]) ? 1 : 0;
	struct mapping *m = pass->found[at];

	memmove(pass->found + at, pass->found + at + 1,
		(pass->n - at - 1) * sizeof(pass->found[0]));
	pass->n--;
	pass->left_out++;
	if (m->seen) {
		m->seen = false;
	} else {
		mapping_free(m);
		pass->fresh--;
	}
}

static void pass_line(struct pass *pass, const char *text, size_t len)
{
	struct maps_line line;
	struct mapping *m;

	if (!maps_parse_line(text, len, &line))
		return;
	if (line.offset == 0 && line.path_len) {
		pass->base = line.start;
		pass->device = line.device;
		pass->inode = line.inode;
	}
	if (!has_code(&line))
		return;
	if (pass->n == MAPS_MAX)
		maps_make_room(pass);
	m = find_known(&line);
	if (m) {
		m->seen = true;
	} else {
		bool ours = pass->device == line.device && pass->inode == line.inode;

		m = mapping_new(&line, ours ? pass->base : 0);
		if (!m)
			return;
		m->shown.generation = ++maps.generation;
		pass->fresh++;
	}
	pass->found[pass->n++] = m;
}

static int read_maps(struct pass *pass)
{
	static char buffer[65536]; /* only the agent's thread uses it */
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(fd, buffer + have, sizeof(buffer) - have)) > 0) {
		size_t at = 0;

		have += (size_t)got;
		for (size_t i = 0; i < have; i++) {
			if (buffer[i] != '\n')
				continue;
			pass_line(pass, buffer + at, i - at);
			at = i + 1;
		}
		if (!at && have > TEXT_LINE_MAX)
			break;
		memmove(buffer, buffer + at, have - at);
		have -= at;
	}
	close(fd);
	return got < 0 ? -EIO : 0;
}

static struct unwind_table *maps_make_table(void)
{
	struct unwind_table *t = malloc(sizeof(*t) + maps.n * sizeof(t->ranges[0]));

	if (!t)
		return NULL;
	t->generation = maps.generation;
	t->n = maps.n;
	for (uint32_t i = 0; i < maps.n; i++) {
		const struct mapping *m = maps.now[i];

		t->ranges[i] = (struct unwind_range){ .start = m->shown.start,
						      .end = m->shown.end,
						      .base = m->base,
						      .rows = m->rows,
						      .musl = m->musl };
	}
	return t;
}

static void free_retired(void)
{
	while (maps.retired) {
		struct mapping *m = maps.retired;

		maps.retired = m->next;
		mapping_free(m);
	}
	free(maps.retired_table);
	maps.retired_table = NULL;
}

/* Publishes the new table after all else is set; mappings that are not in it are retired. */
static int maps_adopt(struct pass *pass)
{
	struct unwind_table *table;

	for (uint32_t i = 0; i < maps.n; i++) {
		struct mapping *m = maps.now[i];

		if (!m->seen) {
			m->next = maps.retired;
			maps.retired = m;
		}
		m->seen = false;
	}
	memcpy(maps.now, pass->found, pass->n * sizeof(pass->found[0]));
	maps.n = pass->n;
	maps.left_out = pass->left_out;
	for (uint32_t i = 0; i < maps.n; i++)
		maps.left_out += maps.now[i]->no_room;
	maps.generation++;
	table = maps_make_table();
	if (!table)
		table = calloc(1, sizeof(*table)); /* without memory the table is empty: no native
						    * unwinding is better than reading freed rows */
	maps.retired_table = unwind_publish(table);
	return table ? 0 : -ENOMEM;
}

static int maps_on_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t *counters = arg;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
		counters[0] = info->dlpi_adds;
		counters[1] = info->dlpi_subs;
	}
	return 1;
}

static void load_fresh(struct pass *pass)
{
	struct safe_copy copy;

	if (!pass->fresh || safe_copy_open(&copy) < 0)
		return;
	/* permanent ones first, then by falling address, because there may not be room for all:
	 * libjvm is the most important, and libraries that were loaded early, like libc, usually
	 * have the highest addresses */
	for (int first = 1; first >= 0; first--)
		for (uint32_t i = pass->n; i-- > 0;)
			if (!pass->found[i]->seen && mapping_stays(pass->found[i]) == first)
				load_image(&copy, pass->found[i]);
	safe_copy_close(&copy);
}

int maps_refresh(void)
{
	static struct pass pass; /* static, because 8 KiB are too much for the agent's small
				  * stack */
	uint64_t counters[2] = { 0, 0 };
	int r;

	if (maps.retired || maps.retired_table) {
		if (!guard_is_quiescent())
			return 0; /* the next call does it, so that there is at most one set of
				   * retired tables */
		free_retired();
	}
	dl_iterate_phdr(maps_on_object, counters);
	if (maps.n && counters[0] && counters[0] == maps.adds && counters[1] == maps.subs)
		return 0;
	memset(&pass, 0, sizeof(pass));
	r = read_maps(&pass);
	if (r < 0 || !pass.n) {
		for (uint32_t i = 0; i < pass.n; i++)
			if (!pass.found[i]->seen)
				mapping_free(pass.found[i]);
		for (uint32_t i = 0; i < maps.n; i++)
			maps.now[i]->seen = false;
		return r < 0 ? r : -ENODATA;
	}
	load_fresh(&pass);
	maps.adds = counters[0];
	maps.subs = counters[1];
	return maps_adopt(&pass);
}

bool maps_find(uint64_t pc, struct walk_mapping *ret)
{
	for (uint32_t i = 0; i < maps.n; i++) {
		if (pc >= maps.now[i]->shown.start && pc < maps.now[i]->shown.end) {
			*ret = maps.now[i]->shown;
			return true;
		}
	}
	for (const struct mapping *m = maps.retired; m; m = m->next) {
		if (pc >= m->shown.start && pc < m->shown.end) {
			*ret = m->shown;
			return true;
		}
	}
	return false;
}

void maps_free(void)
{
	static struct pass nothing;

	if ((maps.retired || maps.retired_table) && guard_is_quiescent())
		free_retired();
	if (maps.retired || maps.retired_table)
		return; /* a handler is running: the tables stay, for the next session */
	(void)maps_adopt(&nothing);
	if (guard_is_quiescent())
		free_retired();
}

uint64_t maps_bytes(void)
{
	return maps.bytes + sizeof(maps) + maps.n * sizeof(struct unwind_range);
}

uint32_t maps_left_out(void)
{
	return maps.left_out;
}
