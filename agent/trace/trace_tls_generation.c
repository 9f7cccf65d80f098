/*
 * See trace_tls.h: the generation at which glibc gave a library its number. Numbers are used again,
 * and a thread's table is brought up to date only when the thread uses a variable; until then it
 * has the storage of the library that had the number before. glibc exports where its list of
 * libraries is, for debuggers: the descriptors of libthread_db (nptl_db/db_info.c), {size in bits,
 * elements, offset}, in libc.so.6, or in libpthread.so.0 before 2.34.
 */
#include <dlfcn.h>
#include "agent/base/guard.h"
#include "agent/trace/trace_tls.h"

#define LISTS_MAX 1024u

static struct {
	bool known;
	uint64_t linker; /* _rtld_global */
	uint32_t lists; /* in that: the first list */
	uint32_t next, len, entries; /* in a list */
	uint32_t entry_bytes, generation; /* of an entry; in an entry */
} tables;

/* The offset in a descriptor; *missing = true: there is none. */
static uint32_t trace_tls_field(const char *descriptor, bool *missing)
{
	const uint32_t *d = dlsym(RTLD_DEFAULT, descriptor);

	*missing |= !d;
	return d ? d[2] : 0;
}

void trace_tls_generation_init(void)
{
	const void *linker = dlsym(RTLD_DEFAULT, "_rtld_global");
	const uint32_t *entry_bytes = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_dtv_slotinfo");
	bool missing = !linker || !entry_bytes;

	tables.lists =
		trace_tls_field("_thread_db_rtld_global__dl_tls_dtv_slotinfo_list", &missing);
	tables.next = trace_tls_field("_thread_db_dtv_slotinfo_list_next", &missing);
	tables.len = trace_tls_field("_thread_db_dtv_slotinfo_list_len", &missing);
	tables.entries = trace_tls_field("_thread_db_dtv_slotinfo_list_slotinfo", &missing);
	tables.generation = trace_tls_field("_thread_db_dtv_slotinfo_gen", &missing);
	tables.linker = (uint64_t)(uintptr_t)linker;
	tables.entry_bytes = entry_bytes ? *entry_bytes : 0;
	tables.known = !missing;
}

uint64_t trace_tls_generation_at(uint64_t module)
{
	uint64_t list, n;

	if (!tables.known)
		return TRACE_TLS_UNKNOWN;
	list = load64_sig(tables.linker + tables.lists);
	for (uint32_t i = 0; list && i < LISTS_MAX; i++, list = load64_sig(list + tables.next)) {
		n = load64_sig(list + tables.len);
		if (module < n)
			return list + tables.entries + module * tables.entry_bytes +
			       tables.generation;
		module -= n;
	}
	return TRACE_TLS_UNKNOWN;
}
