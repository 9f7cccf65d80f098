/* See wall_blocked.h. */
#include "agent/engine/wall_blocked.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#if defined(__aarch64__)
#define CALL_BYTES 4u /* svc */
#else
#define CALL_BYTES 2u /* syscall */
#endif

/* Reads one word of the line, "0x..." or decimal. false = there is none. */
static bool wall_next_word(const char **p, uint64_t *ret)
{
	unsigned base = 10;

	*ret = 0;
	while (**p == ' ')
		(*p)++;
	if ((*p)[0] == '0' && (*p)[1] == 'x') {
		base = 16;
		*p += 2;
	}
	for (bool any = false;; any = true, (*p)++) {
		unsigned digit = 99;

		if (**p >= '0' && **p <= '9')
			digit = (unsigned)(**p - '0');
		else if (**p >= 'a' && **p <= 'f')
			digit = (unsigned)(**p - 'a') + 10;
		if (digit >= base)
			return any;
		*ret = *ret * base + digit;
	}
}

/* "NUMBER ARG1 .. ARG6 SP PC", "running", or "-1 SP PC" outside of system calls */
bool wall_line_is_at(const char *line, uint64_t pc, uint64_t sp, uint64_t *argument)
{
	uint64_t words[9];

	for (int i = 0; i < 9; i++)
		if (!wall_next_word(&line, &words[i]))
			return false;
	/* a system call that will be restarted was interrupted at its instruction, not after it */
	if (words[7] != sp || (words[8] != pc && words[8] != pc + CALL_BYTES))
		return false;
	if (*argument == 0)
		*argument = words[1];
	return words[1] == *argument;
}

bool wall_is_blocked_at(uint32_t tid, uint64_t pc, uint64_t sp, uint64_t *argument)
{
	char path[48], line[256];
	long n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (n <= 0)
		return false;
	line[n] = '\0';
	return wall_line_is_at(line, pc, sp, argument);
}
