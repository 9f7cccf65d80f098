/* See libjvm.h. */
#include "agent/hotspot/libjvm.h"

#include <elf.h>
#include <link.h>
#include <string.h>

static struct {
	bool found;
	char path[512]; /* "" = it does not fit */
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	const ElfW(Rela) * rela, *plt;
	size_t n_rela, n_plt;
	struct libjvm_image image;
} jvm;

/* glibc relocates the pointers of the dynamic section in place; musl leaves them as offsets */
static uintptr_t dynamic_pointer(uintptr_t base, ElfW(Addr) value)
{
	return value < base ? base + value : value;
}

static void read_dynamic(uintptr_t base, const ElfW(Dyn) * dyn)
{
	jvm.base = base;
	for (; dyn->d_tag != DT_NULL; dyn++) {
		uintptr_t p = dynamic_pointer(base, dyn->d_un.d_ptr);

		switch (dyn->d_tag) {
		case DT_SYMTAB:
			jvm.symbols = (const void *)p;
			break;
		case DT_STRTAB:
			jvm.strings = (const void *)p;
			break;
		case DT_GNU_HASH:
			jvm.gnu_hash = (const void *)p;
			break;
		case DT_HASH:
			jvm.sysv_hash = (const void *)p;
			break;
		case DT_RELA:
			jvm.rela = (const void *)p;
			break;
		case DT_RELASZ:
			jvm.n_rela = dyn->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_JMPREL:
			jvm.plt = (const void *)p;
			break;
		case DT_PLTRELSZ:
			jvm.n_plt = dyn->d_un.d_val / sizeof(ElfW(Rela));
			break;
		default:
			break;
		}
	}
}

static void add_segment(uintptr_t base, const ElfW(Phdr) * segment)
{
	uintptr_t low = base + segment->p_vaddr, high = low + segment->p_memsz;

	if (!jvm.image.low || low < jvm.image.low)
		jvm.image.low = low;
	if (high > jvm.image.high)
		jvm.image.high = high;
	if (!(segment->p_flags & PF_W) || segment->p_memsz <= segment->p_filesz)
		return;
	jvm.image.bss_low = low + segment->p_filesz;
	jvm.image.bss_high = high;
}

static int libjvm_on_object(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	(void)data;
	if (!name || strcmp(name, "/libjvm.so") != 0)
		return 0;
	if (strlen(info->dlpi_name) < sizeof(jvm.path))
		memcpy(jvm.path, info->dlpi_name, strlen(info->dlpi_name) + 1);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD)
			add_segment(info->dlpi_addr, segment);
		if (segment->p_type == PT_DYNAMIC)
			read_dynamic(info->dlpi_addr,
				     (const void *)(info->dlpi_addr + segment->p_vaddr));
	}
	jvm.found = jvm.symbols && jvm.strings && (jvm.gnu_hash || jvm.sysv_hash);
	return 1;
}

bool libjvm_find(void)
{
	if (!jvm.found)
		dl_iterate_phdr(libjvm_on_object, NULL);
	return jvm.found;
}

bool libjvm_file(const char **ret_path, uint64_t *ret_base)
{
	if (!libjvm_find() || !jvm.path[0])
		return false;
	*ret_path = jvm.path;
	*ret_base = jvm.base;
	return true;
}

bool libjvm_image(struct libjvm_image *ret)
{
	if (!libjvm_find() || !jvm.image.bss_low)
		return false;
	*ret = jvm.image;
	return true;
}

/* The number of dynamic symbols, which no entry of the dynamic section gives. nchain of DT_HASH is
 * that number; with DT_GNU_HASH it follows from the end of the last chain. */
static uint32_t symbol_count(void)
{
	uint32_t n_buckets, first, bloom_words, last = 0;
	const uint32_t *buckets, *chain;

	if (jvm.sysv_hash)
		return jvm.sysv_hash[1];
	n_buckets = jvm.gnu_hash[0];
	first = jvm.gnu_hash[1];
	bloom_words = jvm.gnu_hash[2];
	buckets = jvm.gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
	chain = buckets + n_buckets;
	for (uint32_t i = 0; i < n_buckets; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < first)
		return first;
	while (!(chain[last - first] & 1))
		last++;
	return last + 1;
}

void *libjvm_symbol(const char *name)
{
	uint32_t n;

	if (!libjvm_find())
		return NULL;
	n = symbol_count();
	for (uint32_t i = 1; i < n; i++) {
		const ElfW(Sym) *s = &jvm.symbols[i];

		if (s->st_shndx != SHN_UNDEF && strcmp(jvm.strings + s->st_name, name) == 0)
			return (void *)(jvm.base + s->st_value);
	}
	return NULL;
}

static void **slot_in(const ElfW(Rela) * rela, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t symbol = (uint32_t)ELF64_R_SYM(rela[i].r_info);

		if (symbol && strcmp(jvm.strings + jvm.symbols[symbol].st_name, name) == 0)
			return (void **)(jvm.base + rela[i].r_offset);
	}
	return NULL;
}

void **libjvm_import_slot(const char *name)
{
	void **slot;

	if (!libjvm_find())
		return NULL;
	slot = slot_in(jvm.plt, jvm.n_plt, name);
	return slot ? slot : slot_in(jvm.rela, jvm.n_rela, name);
}

/* One of the tables gHotSpotVM*, an array of rows. libjvm also exports the size of a row and the
 * offsets of its members (libjvm_member()), because they differ between versions
 * (vmStructs.hpp). */
struct libjvm_table {
	const char *base;
	uint64_t stride;
};

static bool table_open(struct libjvm_table *t, const char *table, const char *stride)
{
	const char *const *base = libjvm_symbol(table);
	const uint64_t *size = libjvm_symbol(stride);

	if (!base || !*base || !size || !*size)
		return false;
	t->base = *base;
	t->stride = *size;
	return true;
}

static uint64_t libjvm_member(const char *symbol)
{
	const uint64_t *offset = libjvm_symbol(symbol);

	return offset ? *offset : 0;
}

/* The offsets of the members of a row of gHotSpotVMStructs. */
static struct {
	struct libjvm_table rows;
	uint64_t type, field, type_string, offset, address;
} structs;

static bool structs_open(void)
{
	if (structs.rows.base)
		return true;
	if (!table_open(&structs.rows, "gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride"))
		return false;
	structs.type = libjvm_member("gHotSpotVMStructEntryTypeNameOffset");
	structs.field = libjvm_member("gHotSpotVMStructEntryFieldNameOffset");
	structs.type_string = libjvm_member("gHotSpotVMStructEntryTypeStringOffset");
	structs.offset = libjvm_member("gHotSpotVMStructEntryOffsetOffset");
	structs.address = libjvm_member("gHotSpotVMStructEntryAddressOffset");
	return true;
}

bool libjvm_field(const char *type, const char *field, struct libjvm_field *ret)
{
	if (!structs_open())
		return false;
	for (const char *row = structs.rows.base;; row += structs.rows.stride) {
		const char *row_type = *(const char *const *)(row + structs.type);
		const char *row_field = *(const char *const *)(row + structs.field);

		if (!row_type || !row_field)
			return false;
		if (strcmp(row_type, type) != 0 || strcmp(row_field, field) != 0)
			continue;
		ret->type = *(const char *const *)(row + structs.type_string);
		ret->offset = (long)*(const uint64_t *)(row + structs.offset);
		ret->address = *(void *const *)(row + structs.address);
		if (!ret->type)
			ret->type = "";
		return true;
	}
}

long libjvm_offset(const char *type, const char *field)
{
	struct libjvm_field f;

	return libjvm_field(type, field, &f) ? f.offset : -1;
}

int32_t libjvm_thread_offset(const char *field)
{
	long at = libjvm_offset("JavaThread", field);

	return (int32_t)(at >= 0 ? at : libjvm_offset("Thread", field));
}

void *libjvm_static(const char *type, const char *field)
{
	struct libjvm_field f;

	return libjvm_field(type, field, &f) ? f.address : NULL;
}

/* The address of a constant's value; NULL = there is no such constant. */
static const char *libjvm_constant(const struct libjvm_table *t, const char *name, uint64_t name_at,
				   uint64_t permit_value_at)
{
	for (const char *row = t->base;; row += t->stride) {
		const char *row_name = *(const char *const *)(row + name_at);

		if (!row_name)
			return NULL;
		if (strcmp(row_name, name) == 0)
			return row + permit_value_at;
	}
}

bool libjvm_int_constant(const char *name, int32_t *ret)
{
	const char *value = NULL;
	struct libjvm_table t;

	if (table_open(&t, "gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntryArrayStride"))
		value = libjvm_constant(&t, name,
					libjvm_member("gHotSpotVMIntConstantEntryNameOffset"),
					libjvm_member("gHotSpotVMIntConstantEntryValueOffset"));
	if (value)
		*ret = *(const int32_t *)value;
	return value != NULL;
}

bool libjvm_long_constant(const char *name, int64_t *ret)
{
	const char *value = NULL;
	struct libjvm_table t;

	if (table_open(&t, "gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntryArrayStride"))
		value = libjvm_constant(&t, name,
					libjvm_member("gHotSpotVMLongConstantEntryNameOffset"),
					libjvm_member("gHotSpotVMLongConstantEntryValueOffset"));
	if (value)
		*ret = *(const int64_t *)value;
	return value != NULL;
}

size_t libjvm_type_size(const char *type)
{
	uint64_t name_at = libjvm_member("gHotSpotVMTypeEntryTypeNameOffset");
	uint64_t size_at = libjvm_member("gHotSpotVMTypeEntrySizeOffset");
	struct libjvm_table t;

	if (!table_open(&t, "gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride"))
		return 0;
	for (const char *row = t.base;; row += t.stride) {
		const char *name = *(const char *const *)(row + name_at);

		if (!name)
			return 0;
		if (strcmp(name, type) == 0)
			return (size_t) * (const uint64_t *)(row + size_at);
	}
}

struct jdk_version libjvm_version(void)
{
	const int32_t *major = libjvm_static("Abstract_VM_Version", "_vm_major_version");
	const int32_t *minor = libjvm_static("Abstract_VM_Version", "_vm_minor_version");

	if (!major || !minor)
		return (struct jdk_version){ 0, 0 };
	return jdk_version_of(*major, *minor,
			      libjvm_static("Abstract_VM_Version", "_vm_security_version"));
}

bool libjvm_code_cache(uint64_t *ret_low, uint64_t *ret_high)
{
	const uint64_t *low = libjvm_static("CodeCache", "_low_bound");
	const uint64_t *high = libjvm_static("CodeCache", "_high_bound");
	const char *const *heap;
	long memory, low_at, high_at;

	if (low && high) {
		*ret_low = *low;
		*ret_high = *high;
		return true;
	}
	/* JDK 8 has one CodeHeap, whose memory is reserved once */
	heap = libjvm_static("CodeCache", "_heap");
	memory = libjvm_offset("CodeHeap", "_memory");
	low_at = libjvm_offset("VirtualSpace", "_low_boundary");
	high_at = libjvm_offset("VirtualSpace", "_high_boundary");
	if (!heap || !*heap || memory < 0 || low_at < 0 || high_at < 0)
		return false;
	*ret_low = *(const uint64_t *)(*heap + memory + low_at);
	*ret_high = *(const uint64_t *)(*heap + memory + high_at);
	return true;
}
