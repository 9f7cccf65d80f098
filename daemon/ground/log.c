/* See log.h. Each line is one write(2), so that lines of the daemon and its children do not mix. */
#include "daemon/ground/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/journal.h"
#include "daemon/ground/utf8.h"

#define LINE_MAX_BYTES 1024

static enum log_level max_level = LOG_LEVEL_INFO;

/* Is stderr connected to journald? JOURNAL_STREAM has the device and inode of its stream
 * (systemd.exec(5)); they are compared, because a child may inherit it with another stderr. */
static bool log_goes_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_set_level(enum log_level level)
{
	max_level = level;
}

bool log_wanted(enum log_level level)
{
	return level <= max_level;
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	bool journal = log_goes_to_journal();
	size_t prefix, len;
	va_list ap;
	int n;

	if (!log_wanted(level))
		return;
	/* a line that goes to journald without fields has its priority in front, sd-daemon(3) */
	prefix = journal ? (size_t)snprintf(line, sizeof(line), "<%d>", (int)level) : 0;
	len = prefix + (size_t)snprintf(line + prefix, sizeof(line) - prefix, "%s", event);
	if (fmt) {
		line[len++] = ' ';
		va_start(ap, fmt);
		n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
		va_end(ap);
		if (n > 0)
			len += (size_t)n < sizeof(line) - len - 1 ? (size_t)n
								  : sizeof(line) - len - 2;
	}
	line[len] = '\0';
	if (journal && journal_send((int)level, line + prefix))
		return;
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* stderr cannot be written: there is nowhere to report that */
}

void log_to_journal(void)
{
	if (log_goes_to_journal())
		(void)journal_open(JOURNAL_SOCKET);
}

const char *log_str(const char *s)
{
	static char buffers[4][208];
	static unsigned next;
	char *buf = buffers[next++ % 4];
	size_t n = 0;

	buf[n++] = '"';
	for (; *s && n < sizeof(buffers[0]) - 3; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			buf[n++] = '\\';
		buf[n++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	buf[n] = '\0';
	n = utf8_mend(buf); /* it may be cut inside a character */
	buf[n++] = '"';
	buf[n] = '\0';
	return buf;
}
