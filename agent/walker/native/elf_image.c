#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "agent/base/arch.h"
#include "agent/walker/native/elf_image.h"

#define NOTE_BYTES_MAX 1024

static void find_build_id(const uint8_t *notes, size_t len, struct elf_image *image)
{
	size_t at = 0;

	while (len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, desc, next;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		if (note.n_namesz > len || note.n_descsz > len)
			return;
		desc = name + ((note.n_namesz + 3u) & ~3u);
		next = desc + ((note.n_descsz + 3u) & ~3u);
		if (desc + note.n_descsz > len)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && note.n_descsz <= WIRE_BUILD_ID_MAX) {
			memcpy(image->build_id, notes + desc, note.n_descsz);
			image->build_id_len = (uint8_t)note.n_descsz;
			return;
		}
		if (next > len)
			return;
		at = next;
	}
}

static void read_notes(struct safe_copy *copy, struct elf_image *image)
{
	uint8_t notes[NOTE_BYTES_MAX];

	for (uint32_t i = 0; i < image->n && !image->build_id_len; i++) {
		const Elf64_Phdr *p = &image->segments[i];
		size_t len = p->p_memsz < sizeof(notes) ? p->p_memsz : sizeof(notes);

		if (p->p_type == PT_NOTE &&
		    safe_copy(copy, notes, image->bias + p->p_vaddr, len) == 0)
			find_build_id(notes, len, image);
	}
}

int elf_image_read(struct safe_copy *copy, uint64_t base, struct elf_image *ret)
{
	const Elf64_Phdr *first;
	Elf64_Ehdr header;
	int r;

	r = safe_copy(copy, &header, base, sizeof(header));
	if (r < 0)
		return r;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_machine != ARCH_ELF || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    header.e_phoff > 65536)
		return -ENOEXEC;
	memset(ret, 0, sizeof(*ret));
	ret->base = base;
	ret->n = header.e_phnum < ELF_IMAGE_SEGMENTS_MAX ? header.e_phnum : ELF_IMAGE_SEGMENTS_MAX;
	r = safe_copy(copy, ret->segments, base + header.e_phoff, ret->n * sizeof(Elf64_Phdr));
	if (r < 0)
		return r;
	first = elf_image_segment(ret, PT_LOAD);
	if (!first)
		return -ENOEXEC;
	ret->bias = base - (first->p_vaddr - first->p_offset);
	read_notes(copy, ret);
	return 0;
}

const Elf64_Phdr *elf_image_segment(const struct elf_image *image, uint32_t type)
{
	for (uint32_t i = 0; i < image->n; i++)
		if (image->segments[i].p_type == type)
			return &image->segments[i];
	return NULL;
}

uint64_t elf_image_segment_end(const struct elf_image *image, uint64_t address)
{
	for (uint32_t i = 0; i < image->n; i++) {
		const Elf64_Phdr *p = &image->segments[i];
		uint64_t start = image->bias + p->p_vaddr;

		if (p->p_type == PT_LOAD && address >= start && address - start < p->p_filesz)
			return start + p->p_filesz;
	}
	return 0;
}
