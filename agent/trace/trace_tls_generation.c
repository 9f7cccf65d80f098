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

/* The offset in a descriptor; *missing = true: there is none. */
static uint32_t trace_tls_field(const char *descriptor, bool *missing)
{
	const uint32_t *d = dlsym(RTLD_DEFAULT, descriptor);

	*missing |= !d;
	return d ? d[2] : 0;
}

uint64_t trace_tls_generation_at(uint64_t module)
{
	bool missing = false;
	const void *linker = dlsym(RTLD_DEFAULT, "_rtld_global");
	const uint32_t *entry_bytes = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_dtv_slotinfo");
	uint32_t lists =
		trace_tls_field("_thread_db_rtld_global__dl_tls_dtv_slotinfo_list", &missing);
	uint32_t next = trace_tls_field("_thread_db_dtv_slotinfo_list_next", &missing);
	uint32_t len = trace_tls_field("_thread_db_dtv_slotinfo_list_len", &missing);
	uint32_t entries = trace_tls_field("_thread_db_dtv_slotinfo_list_slotinfo", &missing);
	uint32_t generation = trace_tls_field("_thread_db_dtv_slotinfo_gen", &missing);
	uint64_t list, n;

	if (missing || !linker || !entry_bytes)
		return TRACE_TLS_UNKNOWN;
	list = load64_sig((uint64_t)(uintptr_t)linker + lists);
	for (uint32_t i = 0; list && i < LISTS_MAX; i++, list = load64_sig(list + next)) {
		n = load64_sig(list + len);
		if (module < n)
			return list + entries + module * *entry_bytes + generation;
		module -= n;
	}
	return TRACE_TLS_UNKNOWN;
}
