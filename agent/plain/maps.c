/* See maps.h. */
#include "agent/plain/maps.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/agent.h"

#define MAPPINGS_MAX 1024u
#define TEXT_BYTES   8192u

struct mapping {
	uint64_t start, end, offset;
	char path[PATH_BYTES];
	uint8_t build_id[WIRE_BUILD_ID_MAX];
	uint8_t build_id_len;
	uint32_t generation;
};

static struct mapping *table;
static uint32_t n_mappings, next_generation = 1;
static uint64_t refreshed_mono_ns;

uint64_t maps_bytes(void)
{
	return table ? MAPPINGS_MAX * sizeof(*table) : 0;
}

void maps_free(void)
{
	free(table);
	table = NULL;
	n_mappings = 0;
}

static bool note_build_id(struct mapping *m, const uint32_t *note, long words)
{
	/* words: name size, descriptor size, type, name, descriptor; both padded to 4 */
	for (long at = 0; at + 4 <= words;) {
		uint32_t name_words = (note[at] + 3) / 4, id_bytes = note[at + 1];
		uint32_t id_words = (id_bytes + 3) / 4;

		if (name_words > 256 || id_words > 256)
			return false;
		if (note[at + 2] == NT_GNU_BUILD_ID && name_words == 1 &&
		    memcmp(&note[at + 3], "GNU", 4) == 0 && id_bytes <= WIRE_BUILD_ID_MAX &&
		    at + 4 + (long)id_words <= words) {
			memcpy(m->build_id, &note[at + 4], id_bytes);
			m->build_id_len = (uint8_t)id_bytes;
			return true;
		}
		at += 3 + name_words + id_words;
	}
	return false;
}

/* The GNU build-id in the notes of the file, read through its path. */
static void read_build_id(struct mapping *m)
{
	ElfW(Ehdr) ehdr;
	int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0)
		return;
	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_phentsize != sizeof(ElfW(Phdr)))
		ehdr.e_phnum = 0;
	for (int i = 0; i < ehdr.e_phnum && i < 64; i++) {
		ElfW(Phdr) phdr;
		uint32_t note[512];
		long n;

		if (pread(fd, &phdr, sizeof(phdr), (off_t)(ehdr.e_phoff + (size_t)i * sizeof(phdr))) !=
		    sizeof(phdr))
			break;
		if (phdr.p_type != PT_NOTE)
			continue;
		n = pread(fd, note, phdr.p_filesz < sizeof(note) ? phdr.p_filesz : sizeof(note),
			  (off_t)phdr.p_offset);
		if (n > 0 && note_build_id(m, note, n / 4))
			break;
	}
	close(fd);
}

static const char *hex(const char *p, uint64_t *ret)
{
	uint64_t v = 0;

	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			v = v << 4 | (uint64_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			v = v << 4 | (uint64_t)(*p - 'a' + 10);
		else
			break;
	}
	*ret = v;
	return p;
}

/* "start-end perms offset dev inode   path" */
static bool parse_line(const char *line, struct mapping *m)
{
	const char *p = hex(line, &m->start);
	size_t n;

	if (*p != '-')
		return false;
	p = hex(p + 1, &m->end);
	if (p[0] != ' ' || p[3] != 'x')
		return false;
	p = hex(p + 6, &m->offset);
	while (*p && *p != '/' && *p != '[')
		p++;
	n = strlen(p);
	if (n == 0 || n >= sizeof(m->path))
		return false;
	memcpy(m->path, p, n + 1);
	return true;
}

static void add(const struct mapping *fresh, const struct mapping *old, uint32_t n_old)
{
	struct mapping *m = &table[n_mappings++];

	for (uint32_t i = 0; i < n_old; i++) {
		if (old[i].start == fresh->start && old[i].end == fresh->end &&
		    old[i].offset == fresh->offset && strcmp(old[i].path, fresh->path) == 0) {
			*m = old[i];
			return;
		}
	}
	*m = *fresh;
	m->generation = next_generation++;
	m->build_id_len = 0;
	if (m->path[0] == '/')
		read_build_id(m);
}

static void read_maps(int fd, const struct mapping *old, uint32_t n_old)
{
	static char text[TEXT_BYTES + 1];
	static struct mapping fresh;
	size_t have = 0;
	long n;

	while ((n = read(fd, text + have, TEXT_BYTES - have)) > 0) {
		char *line = text, *end;

		have += (size_t)n;
		text[have] = '\0';
		while ((end = strstr(line, "\n"))) {
			*end = '\0';
			if (parse_line(line, &fresh) && n_mappings < MAPPINGS_MAX)
				add(&fresh, old, n_old);
			line = end + 1;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		if (have == TEXT_BYTES)
			return; /* no line is that long */
	}
}

void maps_refresh(void)
{
	struct mapping *old = table;
	uint32_t n_old = n_mappings;
	int fd;

	refreshed_mono_ns = mono_ns();
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	table = calloc(MAPPINGS_MAX, sizeof(*table));
	if (table) {
		n_mappings = 0;
		read_maps(fd, old, n_old);
		free(old);
	} else {
		table = old;
	}
	close(fd);
}

static const struct mapping *lookup(uint64_t pc)
{
	uint32_t low = 0, high = n_mappings;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (table[mid].end <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n_mappings && table[low].start <= pc ? &table[low] : NULL;
}

bool maps_find(uint64_t pc, struct walk_mapping *ret)
{
	const struct mapping *m = lookup(pc);

	if (!m && mono_ns() - refreshed_mono_ns > NS_PER_S) {
		maps_refresh();
		m = lookup(pc);
	}
	if (!m)
		return false;
	ret->start = m->start;
	ret->end = m->end;
	ret->file_offset = m->offset;
	ret->path = m->path;
	memcpy(ret->build_id, m->build_id, sizeof(ret->build_id));
	ret->build_id_len = m->build_id_len;
	ret->generation = m->generation;
	return true;
}
