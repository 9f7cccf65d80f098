/* A struct symbols whose requests to open files the test records and answers. */
#pragma once

#include "tests/unit/unit.h"
#include "tests/unit/own_mapping.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"
#include "daemon/symbols/symbols_priv.h"

#define TABLES_BYTES (64u << 20)

int a_function_to_be_found(int x);
__attribute__((noinline)) int a_function_to_be_found(int x)
{
	return x * 3 + 1;
}

/* Requests that have no answer yet. */
static struct asked {
	uint64_t ticket;
	int pid;
	uint64_t begin, end;
	char path[1100], tenant[TENANT_SIZE];
} asked[16];
static unsigned n_asked, n_cancelled;
static int refusal; /* of the next questions */

static inline int ask(void *userdata, uint64_t ticket, const struct symbols_process *p,
		      uint64_t begin, uint64_t end, const char *path)
{
	struct asked *a = &asked[n_asked];

	assert_ptr_equal(userdata, asked);
	if (refusal)
		return refusal;
	assert_true(n_asked < sizeof(asked) / sizeof(asked[0]));
	*a = (struct asked){ .ticket = ticket, .pid = p->pid, .begin = begin, .end = end };
	snprintf(a->path, sizeof(a->path), "%s", path);
	snprintf(a->tenant, sizeof(a->tenant), "%s", p->tenant);
	n_asked++;
	return 0;
}

static inline void forget(unsigned i)
{
	memmove(&asked[i], &asked[i + 1], (n_asked - i - 1) * sizeof(asked[0]));
	n_asked--;
}

static inline void cancel(void *userdata, uint64_t ticket)
{
	(void)userdata;
	for (unsigned i = 0; i < n_asked; i++)
		if (asked[i].ticket == ticket) {
			forget(i);
			n_cancelled++;
			return;
		}
	fail_msg("what was not asked is cancelled");
}

static const struct symbols_opener opener = { ask, cancel };

/* Answers request @i, as kindling-look would. */
static inline void answer(struct symbols *s, unsigned i)
{
	struct asked a = asked[i];
	int file_fd, root_fd;
	struct stat st;
	char name[80];

	forget(i);
	snprintf(name, sizeof(name), "/proc/%d/map_files/%llx-%llx", a.pid,
		 (unsigned long long)a.begin, (unsigned long long)a.end);
	file_fd = open(name, O_PATH | O_CLOEXEC);
	if (file_fd < 0)
		file_fd = open(a.path, O_PATH | O_CLOEXEC);
	if (file_fd < 0 || fstat(file_fd, &st) < 0) {
		symbols_opened(s, a.ticket, -ENOENT, file_fd, -1, NULL, 0);
		return;
	}
	snprintf(name, sizeof(name), "/proc/%d/root", a.pid);
	root_fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	symbols_opened(s, a.ticket, 0, file_fd, root_fd, &st, 0);
}

static inline void start(struct loop *loop, const char *dir, struct symbols **ret)
{
	n_asked = n_cancelled = 0;
	refusal = 0;
	assert_int_equal(symbols_new(loop, dir, TABLES_BYTES, &opener, asked, ret), 0);
}

static inline void go_round(struct loop *loop, struct symbols *s)
{
	assert_int_equal(loop_round(loop, 10 * NS_PER_MS), 0);
	while (n_asked)
		answer(s, 0);
}
