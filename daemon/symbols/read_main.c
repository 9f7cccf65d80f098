/*
 * kindling-symbols [PATH]: reads an ELF file from stdin and writes a symbol table to stdout; exit
 * status 0, any other on failure. If descriptors 3 and 4 are open they are the root directories of
 * the container, in which the file is PATH, and of the host: there the debug file is searched.
 * kindlingd starts it; it gives up its rights before it reads, because all of these files are
 * untrusted.
 *
 * Stdin may be a descriptor that only names the file (O_PATH): closing an open file of a foreign
 * file system may block, so only this process opens it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/symbols/read_elf.h"
#include "daemon/symbols/read_rights.h"

#define ROOT_FD 3
#define HOST_FD 4

static int if_open(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

/* Opens the file while this process still has rights: maybe only the container's user may read
 * it. Only a regular file: opening anything else may have effects. */
static int open_input(void)
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int write_table(const uint8_t *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(STDOUT_FILENO, bytes + done, len - done);

		if (n < 0)
			return 1;
		done += (size_t)n;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct debug_places places = { if_open(ROOT_FD), if_open(HOST_FD),
					     argc > 1 ? argv[1] : NULL };
	uint8_t *bytes;
	size_t len;
	int fd, r;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("kindling-symbols " KINDLING_VERSION) < 0;
	if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
		printf("Usage: %s [PATH] < ELF-FILE > TABLE\n"
		       "Used by kindlingd; reads the function symbols.\n",
		       argv[0]);
		return argv[1][0] == '-' && argv[1][1] == '-' && argv[1][2] == 'h' ? 0 : 2;
	}
	fd = open_input();
	if (fd < 0 || !read_give_up_rights() || read_elf(fd, &places, &bytes, &len) < 0)
		return 1;
	r = write_table(bytes, len);
	free(bytes);
	return r;
}
