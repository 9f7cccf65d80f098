/*
 * The libc functions that the agent may call; it does not link with any other (-z defs). Linked as
 * "libc.so.6", without symbol versions, so that one library loads on every glibc since 2.17 and on
 * musl (which takes libc.so.6 for itself). Not on the list, because their unversioned names mean an
 * old ABI or are missing in some libc: timer_create, fstat, pthread_cond_*, strtol and all of TLS.
 */
#define ALLOW(name)      \
	void name(void); \
	void name(void)  \
	{                \
	}

ALLOW(memcpy)
ALLOW(memmove)
ALLOW(memset)
ALLOW(memcmp)
ALLOW(strlen)
ALLOW(strcmp)
ALLOW(strncmp)
ALLOW(strchr)
ALLOW(strstr)
ALLOW(strrchr)
ALLOW(snprintf)
ALLOW(malloc)
ALLOW(calloc)
ALLOW(free)
ALLOW(mmap)
ALLOW(munmap)
ALLOW(mprotect)
ALLOW(open)
ALLOW(close)
ALLOW(read)
ALLOW(write)
ALLOW(pread)
ALLOW(pwrite)
ALLOW(poll)
ALLOW(getpid)
ALLOW(syscall)
ALLOW(sysconf)
ALLOW(nanosleep)
ALLOW(clock_gettime)
ALLOW(clock_getres)
ALLOW(sigaction)
ALLOW(sigaddset)
ALLOW(pthread_create)
ALLOW(pthread_detach)
ALLOW(pthread_sigmask)
ALLOW(dlsym)
ALLOW(dl_iterate_phdr)
ALLOW(__errno_location)
