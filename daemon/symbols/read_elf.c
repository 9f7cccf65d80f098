/* See read_elf.h. */
#include "daemon/symbols/read_elf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "daemon/ground/mem.h"
#include "daemon/symbols/functions.h"
#include "daemon/symbols/known_code.h"
#include "daemon/symbols/mini_debug.h"

/* The file and others that have its symbols. Names point into them until the table is made. */
struct files {
	Elf *elf, *debug, *mini;
	int debug_fd;
	uint8_t *mini_bytes;
};

static int read_separate(struct functions *f, struct files *files,
			 const struct debug_places *places)
{
	size_t before = f->n, len;
	int e = 0;

	files->debug_fd = places ? debug_file_open(files->elf, places) : -1;
	if (files->debug_fd >= 0)
		files->debug = elf_begin(files->debug_fd, ELF_C_READ_MMAP, NULL);
	if (files->debug)
		e = functions_read(f, files->debug, SHT_SYMTAB);
	if (e < 0 || f->n > before)
		return e;
	if (mini_debug_read(files->elf, &files->mini_bytes, &len) == 0)
		files->mini = elf_memory((char *)files->mini_bytes, len);
	return files->mini ? functions_read(f, files->mini, SHT_SYMTAB) : 0;
}

static int read_elf_read_all(struct functions *f, struct files *files,
			     const struct debug_places *places, uint8_t **ret, size_t *ret_len)
{
	uint32_t flags = 0;
	size_t exported;
	int e;

	functions_segments(f, files->elf);
	e = functions_read(f, files->elf, SHT_SYMTAB);
	if (e == 0 && f->n == 0) {
		e = functions_read(f, files->elf, SHT_DYNSYM);
		exported = f->n;
		if (e == 0)
			e = read_separate(f, files, places);
		if (f->n == exported)
			flags |= TABLE_EXPORTED_ONLY;
	}
	if (e == 0)
		e = known_code(f, files->elf);
	return e < 0 ? e : functions_table(f, flags, ret, ret_len);
}

int read_elf(int fd, const struct debug_places *places, uint8_t **ret, size_t *ret_len)
{
	struct files files = { .debug_fd = -1 };
	struct functions f = { 0 };
	int e = -ENOEXEC;

	elf_version(EV_CURRENT);
	files.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (files.elf && elf_kind(files.elf) == ELF_K_ELF)
		e = read_elf_read_all(&f, &files, places, ret, ret_len);
	functions_deinit(&f);
	elf_end(files.mini);
	free(files.mini_bytes);
	elf_end(files.debug);
	fd_close(files.debug_fd);
	elf_end(files.elf);
	return e;
}
