/* See halts.h. */
#include "tests/unit/halts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"

static const struct {
	const char *name;
	const char *groups; /* where such control groups are; NULL = SIGSTOP and SIGCONT */
	const char *file, *begin, *end;
} ways[HALT_WAYS] = {
	{ "SIGSTOP", NULL, NULL, NULL, NULL },
	{ "cgroup v2", "/sys/fs/cgroup", "cgroup.freeze", "1", "0" },
	{ "cgroup v2", "/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0" },
	{ "cgroup v1", "/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED" },
};

static bool write_word(const char *group, const char *file, const char *word)
{
	char path[128];
	FILE *f;
	bool fine;

	snprintf(path, sizeof(path), "%s/%s", group, file);
	f = fopen(path, "we");
	fine = f && fputs(word, f) >= 0;
	return f && fclose(f) == 0 && fine;
}

bool halt_new(struct halt *h, size_t way, pid_t pid)
{
	char number[16], path[128];

	*h = (struct halt){ .name = ways[way].name, .way = way, .pid = pid };
	if (!ways[way].groups)
		return true;
	snprintf(path, sizeof(path), "%s/cgroup.procs", ways[way].groups);
	if (access(path, F_OK) < 0) /* no such control groups */
		return false;
	snprintf(h->group, sizeof(h->group), "%s/kindling-test-%d", ways[way].groups, (int)pid);
	snprintf(number, sizeof(number), "%d", (int)pid);
	if (mkdir(h->group, 0700) == 0 && write_word(h->group, "cgroup.procs", number))
		return true;
	print_message("%s: not here: %s: %s\n", h->name, h->group, strerror(errno));
	halt_free(h);
	return false;
}

void halt_free(struct halt *h)
{
	if (h->group[0])
		rmdir(h->group);
	h->group[0] = '\0';
}

static void halt_set(const struct halt *h, const char *word, int signo)
{
	if (h->group[0])
		assert_true(write_word(h->group, ways[h->way].file, word));
	else
		assert_int_equal(kill(h->pid, signo), 0);
}

void halt_begin(const struct halt *h)
{
	halt_set(h, ways[h->way].begin, SIGSTOP);
}

void halt_end(const struct halt *h)
{
	halt_set(h, ways[h->way].end, SIGCONT);
}
