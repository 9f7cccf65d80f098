/* See sections.h. */
#include "daemon/symbols/sections.h"

#include <elf.h>
#include <gelf.h>
#include <string.h>

const Elf_Data *section_named(Elf *elf, const char *name)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *its;
		GElf_Shdr h;

		if (!gelf_getshdr(section, &h) || h.sh_type == SHT_NOBITS)
			continue;
		its = elf_strptr(elf, names, h.sh_name);
		if (its && strcmp(its, name) == 0)
			return elf_rawdata(section, NULL);
	}
	return NULL;
}

static size_t build_id_in(Elf_Data *data, uint8_t ret[BUILD_ID_MAX])
{
	size_t at = 0, name_at, id_at;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name_at, &id_at)) > 0)
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    memcmp((char *)data->d_buf + name_at, "GNU", sizeof("GNU")) == 0 &&
		    note.n_descsz <= BUILD_ID_MAX) {
			memcpy(ret, (char *)data->d_buf + id_at, note.n_descsz);
			return note.n_descsz;
		}
	return 0;
}

size_t section_build_id(Elf *elf, uint8_t ret[BUILD_ID_MAX])
{
	Elf_Scn *section = NULL;
	size_t len = 0;
	GElf_Shdr h;

	while (len == 0 && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &h) && h.sh_type == SHT_NOTE)
			len = build_id_in(elf_getdata(section, NULL), ret);
	return len;
}
