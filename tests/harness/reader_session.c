/* The two pipes of a session: loads the agent or returns to one, sends requests, reads. See
 * reader.h. */
#include "tests/harness/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIR_NAME "kindling-reader-"

void read_frames(int fd)
{
	static uint8_t buf[1 << 16];
	static size_t len;
	struct wire_frame frame;
	size_t at = 0;
	ssize_t n;
	int size;

	if (opt.sleep_ms)
		poll(NULL, 0, opt.sleep_ms);
	n = read(fd, buf + len,
		 opt.sleep_ms ? WIRE_FRAME_MAX - len % WIRE_FRAME_MAX : sizeof(buf) - len);
	if (n <= 0)
		return;
	len += (size_t)n;
	in.bytes += (size_t)n;
	while ((size = wire_peek(buf + at, len - at, &frame)) > 0) {
		on_frame(&frame);
		at += (size_t)size;
	}
	if (size < 0) {
		wrong("bytes that are not a frame");
		exit(1);
	}
	len -= at;
	memmove(buf, buf + at, len);
}

void command(int fd, enum wire_type type, uint64_t session)
{
	struct wire_start start = {
		.protocol = WIRE_PROTOCOL,
		.interval_ns = opt.interval_ns,
		.flags = WIRE_START_IDLE_APART | (opt.no_budget ? WIRE_START_NO_BUDGET : 0) |
			 (opt.details ? WIRE_START_DETAILS : 0) |
			 (opt.threads ? WIRE_START_THREADS : 0) | (opt.host ? WIRE_START_HOST : 0),
		.max_cpu_permille = opt.permille,
		.ring_bytes = opt.ring_bytes,
		.session = session,
		.events = opt.events,
		.lock_min_ns = opt.lock_min_ns,
		.monitors = opt.monitors,
		.alloc_interval = opt.alloc_interval,
		.wall_interval_ns = opt.wall_interval_ns,
		.virtual_min_ns = opt.virtual_min_ns,
		.secret = { in.secret, opt.library ? sizeof(in.secret) : 0 },
		.trace = opt.no_traces ? 0
				       : WIRE_TRACE_OTEL | WIRE_TRACE_SKYWALKING |
						 WIRE_TRACE_BRAVE | WIRE_TRACE_PUBLISHED,
		.mdc_keys = { "trace_id,traceId", opt.no_traces ? 0 : 16 },
		.wall_threads = { opt.wall_threads,
				  opt.wall_threads ? (uint32_t)strlen(opt.wall_threads) : 0 },
	};
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	wire_begin(&w, buf, type);
	if (type == WIRE_START)
		(void)wire_put_start(&w, &start);
	len = wire_end(&w, 1);
	if (write(fd, buf, len) != (ssize_t)len)
		perror("control");
}

static int jattach(const char *options)
{
	const char *inject = getenv("KINDLING_INJECT"); /* kindling's own */
	char pid[16], library[PATH_MAX];
	int status;
	pid_t child;

	if (!realpath(opt.library, library))
		return -1;
	snprintf(pid, sizeof(pid), "%d", opt.pid);
	child = fork();
	if (child == 0) {
		int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null_fd, STDOUT_FILENO);
		if (inject)
			execl(inject, inject, pid, "load", library, options, (char *)NULL);
		execlp("jattach", "jattach", pid, "load", library, "true", options, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
		fprintf(stderr, "jattach failed\n");
		return -1;
	}
	return 0;
}

/* Makes two FIFOs, writes a START into one of them, then loads the agent. */
int load(uint64_t session, int *ret_events, int *ret_control)
{
	char dir[] = "/tmp/" DIR_NAME "XXXXXX", events[64], control[64], options[160], proc[64];
	struct stat st;
	int r;

	snprintf(proc, sizeof(proc), "/proc/%d", opt.pid);
	if (!mkdtemp(dir) || chmod(dir, 0711) < 0 || stat(proc, &st) < 0)
		return -1;
	snprintf(events, sizeof(events), "%s/events", dir);
	snprintf(control, sizeof(control), "%s/control", dir);
	if (mkfifo(events, 0600) < 0 || mkfifo(control, 0600) < 0 ||
	    chown(events, st.st_uid, st.st_gid) < 0 || chown(control, st.st_uid, st.st_gid) < 0)
		return -1;
	*ret_events = open(events, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	*ret_control = open(control, O_RDWR | O_CLOEXEC);
	if (*ret_events < 0 || *ret_control < 0)
		return -1;
	if (opt.pipe_bytes && fcntl(*ret_events, F_SETPIPE_SZ, opt.pipe_bytes) < 0)
		perror("F_SETPIPE_SZ");
	memcpy(in.secret, &session, sizeof(session));
	command(*ret_control, WIRE_START, session);
	snprintf(options, sizeof(options), "events=%s,control=%s", events, control);
	r = jattach(options);
	for (double end = now_s() + ANSWER_S;
	     !in.hello && now_s() < end;) /* wait until the agent has opened both */
		read_frames(*ret_events);
	unlink(events);
	unlink(control);
	rmdir(dir);
	return r;
}

static int reopen_one(const char *end, int flags)
{
	char dir[64], path[PATH_MAX + 64], target[PATH_MAX];
	struct dirent *e;
	int fd = -1;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%d/fd", opt.pid);
	d = opendir(dir);
	while (d && fd < 0 && (e = readdir(d))) {
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (strstr(target, DIR_NAME) && strstr(target, end))
			fd = open(path, flags | O_CLOEXEC);
	}
	if (d)
		closedir(d);
	return fd;
}

/* Does what a restarted daemon does: discards what is left in the pipe, then sends START. */
int come_back(uint64_t session, int *ret_events, int *ret_control)
{
	char rest[4096];

	*ret_events = reopen_one("/events", O_RDONLY | O_NONBLOCK);
	*ret_control = reopen_one("/control", O_WRONLY);
	if (*ret_events < 0 || *ret_control < 0)
		return -1;
	while (read(*ret_events, rest, sizeof(rest)) > 0)
		;
	command(*ret_control, WIRE_START, session);
	return 0;
}
