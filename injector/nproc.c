/*
 * Checks RLIMIT_NPROC, the number of threads that a user may have: a JVM of JDK 17 ends itself if
 * it cannot start its attach listener. The kernel counts threads per user and user namespace but
 * shows the count nowhere, so this file adds up the threads of all processes of that user in that
 * namespace.
 */
#include "injector/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/proc.h"

#define TASKS_NEEDED  4
#define PROCESSES_MAX 65536

/* The soft limit; 0 = unlimited or unknown. */
static unsigned long long soft_limit(const struct inject *in)
{
	char text[4096], word[32];

	if (proc_read(in->proc_dfd, "limits", text, sizeof(text)) <= 0 ||
	    !proc_field(text, "Max processes", word, sizeof(word)))
		return 0;
	return strtoull(word, NULL, 10); /* "unlimited" gives 0 */
}

static bool real_uid(const char *status, unsigned *ret)
{
	char text[64];

	return proc_field(status, "Uid:", text, sizeof(text)) && sscanf(text, "%u", ret) == 1;
}

/* The number of threads of @pid, or 0 if it has another user or user namespace than @uid and
 * @userns. @proc_dfd: /proc. */
static unsigned long threads_of(int proc_dfd, const char *pid, unsigned uid, const char *userns)
{
	CLEANUP(fd_closep) int dfd = openat(proc_dfd, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char status[16384], text[64];
	unsigned its_uid;
	ssize_t n;

	if (dfd < 0 || proc_read(dfd, "status", status, sizeof(status)) <= 0 ||
	    !real_uid(status, &its_uid) || its_uid != uid)
		return 0;
	n = readlinkat(dfd, "ns/user", text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	if (strcmp(text, userns) != 0 || !proc_field(status, "Threads:", text, sizeof(text)))
		return 0;
	return strtoul(text, NULL, 10);
}

/* Stops counting at @enough. */
static unsigned long nproc_count(const struct inject *in, unsigned uid, unsigned long long enough)
{
	CLEANUP(fd_closep) int dfd = openat(in->proc_dfd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = dfd >= 0 ? fdopendir(fcntl(dfd, F_DUPFD_CLOEXEC, 3)) : NULL;
	unsigned long total = 0;
	char userns[64];
	struct dirent *e;
	ssize_t n = readlinkat(in->proc_dfd, "ns/user", userns, sizeof(userns) - 1);

	userns[n > 0 ? n : 0] = '\0';
	for (int i = 0; dir && total < enough && i < PROCESSES_MAX && (e = readdir(dir)); i++)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			total += threads_of(dfd, e->d_name, uid, userns);
	if (dir)
		closedir(dir);
	return total;
}

/* The number of threads of the whole host, from "0.1 0.1 0.1 2/TOTAL 4711": if it is below the
 * limit, the sum for one user need not be computed. */
static unsigned long long all_threads(const struct inject *in)
{
	unsigned long long total;
	char text[128];

	if (proc_read(in->proc_dfd, "../loadavg", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*s %*s %*s %*u/%llu", &total) != 1)
		return UINT64_MAX - TASKS_NEEDED;
	return total;
}

int nproc_check(struct inject *in)
{
	unsigned long long limit = soft_limit(in);
	char status[16384];
	unsigned uid;

	if (limit == 0 || proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0 ||
	    !real_uid(status, &uid) || uid == 0) /* the host's root is not limited, fork(2) */
		return 0;
	if (all_threads(in) + TASKS_NEEDED <= limit ||
	    nproc_count(in, uid, limit) + TASKS_NEEDED <= limit)
		return 0;
	return fault_set(
		in->fault, EAGAIN, FAULT_PREFLIGHT,
		"too few threads are left: its user has all of the %llu that it may have (RLIMIT_NPROC)",
		limit);
}
