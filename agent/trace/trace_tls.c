/*
 * See trace_tls.h: finds the variables of publishers in the symbol tables of the loaded libraries.
 * A library may be unloaded meanwhile, so everything of it is read by loads that may fail. No
 * function of the dynamic linker is called that would allocate storage for the variable, or decide
 * where it is: that stays with the application.
 */
#include "agent/trace/trace_tls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include "agent/base/agent.h"
#include "agent/base/guard.h"
#include "agent/hotspot/virtual_price.h"
#include "agent/trace/trace_priv.h"

#define TLS_LOOK_NS (NS_PER_S / 2) /* between two looks */
/* bounds of what is read from a library that may be gone */
#define TLS_DYNAMIC_MAX 256u
#define TLS_CHAIN_MAX	65536u
#define TLS_RELOCS_MAX	(1u << 20)
#define TLS_NAME_MAX	64u

#if defined(__x86_64__)
#define RELOC_DISTANCE	 R_X86_64_TPOFF64
#define RELOC_DESCRIPTOR R_X86_64_TLSDESC
#else
#define RELOC_DISTANCE	 R_AARCH64_TLS_TPREL
#define RELOC_DESCRIPTOR R_AARCH64_TLSDESC
#endif
#define DESCRIPTOR_ARGUMENT 8 /* of a descriptor {function, argument} */

static const char *const trace_tls_names[] = {
	[TRACE_TLS_OTEP] = "otel_thread_ctx_v1",
	[TRACE_TLS_ELASTIC] = "elastic_apm_profiling_correlation_tls_v1",
};

static struct {
	bool usable; /* START asks for it, and the thread's storage can be followed */
	bool looked, again;
	uint64_t next_ns;
	uint64_t adds, subs; /* libraries loaded and unloaded when they were looked at */
} tls;

/* A loaded library. */
struct trace_tls_library {
	uint64_t base, module;
	uint64_t symbols, strings, gnu_hash, sysv_hash;
	uint64_t relocs[2], reloc_bytes[2];
};

/* ---- a library's symbols ---- */

static void trace_tls_read_dynamic(struct trace_tls_library *l, uint64_t dynamic)
{
	for (uint32_t i = 0; i < TLS_DYNAMIC_MAX; i++, dynamic += sizeof(Elf64_Dyn)) {
		uint64_t value = load64_sig(dynamic + offsetof(Elf64_Dyn, d_un));
		/* glibc relocates these pointers in place */
		uint64_t pointer = value < l->base ? l->base + value : value;

		switch (load64_sig(dynamic)) {
		case DT_NULL:
			return;
		case DT_SYMTAB:
			l->symbols = pointer;
			break;
		case DT_STRTAB:
			l->strings = pointer;
			break;
		case DT_GNU_HASH:
			l->gnu_hash = pointer;
			break;
		case DT_HASH:
			l->sysv_hash = pointer;
			break;
		case DT_RELA:
			l->relocs[0] = pointer;
			break;
		case DT_RELASZ:
			l->reloc_bytes[0] = value;
			break;
		case DT_JMPREL:
			l->relocs[1] = pointer;
			break;
		case DT_PLTRELSZ:
			l->reloc_bytes[1] = value;
			break;
		default:
			break;
		}
	}
}

static uint64_t trace_tls_symbol(const struct trace_tls_library *l, uint32_t index)
{
	return l->symbols + (uint64_t)index * sizeof(Elf64_Sym);
}

static bool trace_tls_is_named(const struct trace_tls_library *l, uint32_t index, const char *name)
{
	uint64_t symbol = trace_tls_symbol(l, index);
	uint64_t at = l->strings + load32_sig(symbol);
	uint32_t info_word = load32_sig(symbol + 4); /* st_info, st_other, st_shndx */

	if (ELF64_ST_TYPE(info_word & 0xff) != STT_TLS || info_word >> 16 == SHN_UNDEF)
		return false;
	for (uint32_t i = 0; i < TLS_NAME_MAX; i++) {
		if (load8_sig(at + i) != (uint8_t)name[i])
			return false;
		if (!name[i])
			return true;
	}
	return false;
}

/* The symbol's index by the hash table of GNU; 0 = there is none of this name. */
static uint32_t trace_tls_find_gnu(const struct trace_tls_library *l, const char *name)
{
	uint32_t n = load32_sig(l->gnu_hash), first = load32_sig(l->gnu_hash + 4), hash = 5381;
	uint64_t buckets = l->gnu_hash + 16 + 8ull * load32_sig(l->gnu_hash + 8);
	uint32_t index, entry;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	index = n ? load32_sig(buckets + 4ull * (hash % n)) : 0;
	for (uint32_t i = 0; index >= first && index && i < TLS_CHAIN_MAX; i++, index++) {
		entry = load32_sig(buckets + 4ull * n + 4ull * (index - first));
		if ((entry | 1) == (hash | 1) && trace_tls_is_named(l, index, name))
			return index;
		if (entry & 1 || !entry)
			return 0;
	}
	return 0;
}

static uint32_t trace_tls_find_sysv(const struct trace_tls_library *l, const char *name)
{
	uint32_t n = load32_sig(l->sysv_hash), hash = 0, index;
	uint64_t buckets = l->sysv_hash + 8, chain = buckets + 4ull * n;

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (uint8_t)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	index = n ? load32_sig(buckets + 4ull * (hash % n)) : 0;
	for (uint32_t i = 0; index && i < TLS_CHAIN_MAX; i++) {
		if (trace_tls_is_named(l, index, name))
			return index;
		index = load32_sig(chain + 4ull * index);
	}
	return 0;
}

/* The word in which the linker stores the distance of static storage, be it for the initial-exec
 * model or in a descriptor; 0 = the library has neither. */
static uint64_t trace_tls_distance_at(const struct trace_tls_library *l, uint32_t index,
				      uint64_t offset)
{
	for (uint32_t t = 0; t < 2; t++) {
		uint64_t n = l->relocs[t] ? l->reloc_bytes[t] / sizeof(Elf64_Rela) : 0;

		for (uint64_t i = 0; i < n && i < TLS_RELOCS_MAX; i++) {
			uint64_t at = l->relocs[t] + i * sizeof(Elf64_Rela);
			uint64_t info = load64_sig(at + offsetof(Elf64_Rela, r_info));
			uint64_t type = ELF64_R_TYPE(info), where;

			if (type != RELOC_DISTANCE && type != RELOC_DESCRIPTOR)
				continue;
			/* by its name, or by its offset where the library binds to itself */
			if (load64_sig(at + offsetof(Elf64_Rela, r_addend)) !=
			    (ELF64_R_SYM(info) ? 0 : offset))
				continue;
			if (ELF64_R_SYM(info) && ELF64_R_SYM(info) != index)
				continue;
			where = l->base + load64_sig(at);
			return type == RELOC_DISTANCE ? where : where + DESCRIPTOR_ARGUMENT;
		}
	}
	return 0;
}

/* ---- a look at all libraries ---- */

static void trace_tls_search(const struct trace_tls_library *l, struct trace_tls_places *found)
{
	for (uint32_t form = 0; form < sizeof(trace_tls_names) / sizeof(trace_tls_names[0]);
	     form++) {
		uint32_t index = l->gnu_hash	? trace_tls_find_gnu(l, trace_tls_names[form])
				 : l->sysv_hash ? trace_tls_find_sysv(l, trace_tls_names[form])
						: 0;
		struct trace_tls_place *p = &found->of[found->n];

		if (!index || found->n == TRACE_TLS_PLACES)
			continue;
		p->form = form;
		p->module = l->module;
		p->symbol = trace_tls_symbol(l, index);
		p->symbol_word = load64_sig(p->symbol);
		p->offset = load64_sig(p->symbol + offsetof(Elf64_Sym, st_value));
		p->distance_at = trace_tls_distance_at(l, index, p->offset);
		p->generation_at = trace_tls_generation_at(p->module);
		if (p->generation_at == TRACE_TLS_UNKNOWN && !tls.subs)
			p->generation_at = 0; /* no number can have been used twice */
		found->n++;
	}
}

static bool trace_tls_has_counts(const struct dl_phdr_info *info, size_t size)
{
	(void)info;
	return size >= offsetof(struct dl_phdr_info, dlpi_tls_modid) + sizeof(info->dlpi_tls_modid);
}

static int trace_tls_on_first(struct dl_phdr_info *info, size_t size, void *context)
{
	bool *changed = context;

	if (!trace_tls_has_counts(info, size))
		return 1;
	*changed = !tls.looked || info->dlpi_adds != tls.adds || info->dlpi_subs != tls.subs;
	tls.adds = info->dlpi_adds;
	tls.subs = info->dlpi_subs;
	return 1;
}

static int trace_tls_on_library(struct dl_phdr_info *info, size_t size, void *context)
{
	struct trace_tls_library l = { .base = info->dlpi_addr };

	if (!trace_tls_has_counts(info, size) || !info->dlpi_tls_modid)
		return 0;
	l.module = info->dlpi_tls_modid;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			trace_tls_read_dynamic(&l, l.base + info->dlpi_phdr[i].p_vaddr);
	if (l.symbols && l.strings)
		trace_tls_search(&l, context);
	return 0;
}

static void trace_tls_publish(const struct trace_tls_places *found)
{
	__atomic_fetch_add(&trace_tls_sig.turn, 1, __ATOMIC_SEQ_CST);
	trace_tls_sig.n = found->n;
	memcpy(trace_tls_sig.of, found->of, sizeof(found->of));
	__atomic_fetch_add(&trace_tls_sig.turn, 1, __ATOMIC_SEQ_CST);
	if (found->n)
		__atomic_fetch_or(&trace_sig.on, TRACE_ON_TLS, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(&trace_sig.on, ~TRACE_ON_TLS, __ATOMIC_SEQ_CST);
}

/*
 * Once the application has virtual threads, nothing is read any more: a publisher that does not
 * follow what is mounted leaves the ids of a virtual thread in its carrier's storage, and they
 * would be those of the carrier's own code. This asks the JVM, so it comes after a publisher was
 * found.
 */
static void trace_tls_drop_on_carriers(struct trace_tls_places *found)
{
	if (found->n && virtual_threads_used())
		memset(found, 0, sizeof(*found));
}

uint64_t trace_tls_tick(uint64_t now_ns)
{
	static const sigset_t nothing_blocked;
	struct trace_tls_places found = { 0 };
	bool changed = false;
	uint64_t began_ns;

	if (!tls.usable || now_ns < tls.next_ns)
		return 0;
	tls.next_ns = now_ns + TLS_LOOK_NS;
	dl_iterate_phdr(trace_tls_on_first, &changed);
	changed |= trace_tls_sig.n && virtual_threads_used();
	if (!changed && !tls.again)
		return 0;
	tls.again = changed; /* what is just being loaded may not have its number yet: so twice */
	began_ns = thread_cpu_ns(0);
	(void)guard_begin_sig(&nothing_blocked);
	dl_iterate_phdr(trace_tls_on_library, &found);
	trace_tls_drop_on_carriers(&found);
	tls.looked = true;
	if (found.n != trace_tls_sig.n || memcmp(found.of, trace_tls_sig.of, sizeof(found.of)) != 0)
		trace_tls_publish(&found);
	return thread_cpu_ns(0) - began_ns;
}

/* ---- begin and end ---- */

void trace_tls_begin(bool wanted)
{
	const struct trace_tls_places none = { 0 };

	if (wanted && tls.usable)
		return;
	memset(&tls, 0, sizeof(tls));
	if (trace_tls_sig.n)
		trace_tls_publish(&none);
	/* musl's tables are different */
	tls.usable = wanted && dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	if (tls.usable)
		trace_tls_generation_init();
}
