/*
 * kindling-inject makes one attempt on one target and exits. The daemon starts it with a result
 * socket (result.h), a user without one (commands.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/value.h"
#include "injector/command_line.h"
#include "injector/filters.h"
#include "injector/inject.h"
#include "injector/receive.h"
#include "injector/result.h"
#include "proto/wire.h"

#define DEADLINE_MS_DEFAULT 10000
#define PIPE_BYTES_DEFAULT  (1u << 20)
#define AFTER_DEADLINE_S    4 /* more to remove the files that were placed */
#define DEADLINE_MS_MAX	    3600000
#define HELLO_TURNS	    25 /* polls of up to 20 ms for HELLO after the FIFOs' names are gone */

struct arguments {
	int result_fd; /* -1 = a user started this program */
	int pipes_fd; /* socket to the receiver that gets the pipes; -1 = the pipes go with the
		       * answer */
	uid_t uid; /* uid of the target; for `reattach`, which runs no preflight */
	uint64_t deadline_ms;
	size_t pipe_bytes;
	bool quiet;
	bool may_cover;
	bool known; /* for `reattach`: the daemon knows the attach that loaded the agent */
	const char *library;
};

/* Sets the deadline, and an alarm for the case that a file system of the target never answers. */
static void set_deadline(struct inject *in, uint64_t ms)
{
	in->deadline_mono_ns = clock_mono_ns() + ms * NS_PER_MS;
	(void)alarm((unsigned)(ms / 1000) + AFTER_DEADLINE_S);
}

int inject_open(struct inject *in)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", in->pid);
	/* opened first, so that all that follows can be checked against the process of the pidfd */
	in->pidfd = (int)syscall(SYS_pidfd_open, in->pid, 0);
	if (in->pidfd < 0)
		return fault_set(in->fault, errno, FAULT_IDENTITY, "process %d: ", in->pid);
	in->proc_dfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (in->proc_dfd < 0)
		return fault_set(in->fault, errno, FAULT_IDENTITY, "open %s: ", path);
	in->root_dfd = openat(in->proc_dfd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (in->root_dfd < 0)
		return fault_set(in->fault, errno, FAULT_NAMESPACE,
				 "cannot open the root directory of process %d: ", in->pid);
	in->mnt_ns_fd = openat(in->proc_dfd, "ns/mnt", O_RDONLY | O_CLOEXEC);
	in->cgroup_dfd = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

int inject_prepare(struct inject *in)
{
	int r = inject_open(in);

	if (r == 0)
		r = preflight(in);
	if (r == 0 && !inject_alive(in))
		r = fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	return r;
}

/* ---- for the daemon ------------------------------------------------------------------------- */

/* Copies the START frame from stdin into `control`, before the library is loaded. */
static int forward_start(struct inject *in, int control_fd)
{
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n = read(STDIN_FILENO, frame, sizeof(frame));

	if (n <= 0 || write(control_fd, frame, (size_t)n) != n)
		return fault_set(in->fault, EIO, FAULT_INTERNAL,
				 "there is no START frame on stdin");
	return 0;
}

static int injector_load(struct inject *in, const struct placement *p)
{
	static char reply[INJECT_REPLY_MAX];
	char library[192], options[360];
	const char *words[4] = { "load", library, "true", options };
	int r;

	snprintf(library, sizeof(library), "%s/%s", p->dir, p->library);
	snprintf(options, sizeof(options), "events=%s/%s,control=%s/%s", p->dir, p->events, p->dir,
		 p->control);
	r = attach_command(in, words, reply, sizeof(reply));
	return r < 0 ? r : reply_check_load(reply, in->fault);
}

/* Have the FIFOs' names been deleted, for example by a job that cleans /tmp? */
static bool fifos_are_deleted(const struct placement *p)
{
	struct stat st;

	return fstat(p->events_fd, &st) == 0 && st.st_nlink == 0;
}

/* Waits for HELLO, which proves that the agent runs and has opened both FIFOs. HELLO stays in the
 * pipe. */
static int wait_for_hello(struct inject *in, const struct placement *p)
{
	struct pollfd fd = { .fd = p->events_fd, .events = POLLIN };

	for (int gone = 0; inject_remaining_ms(in) > 0;) {
		if (poll(&fd, 1, 20) > 0 && fd.revents & POLLIN)
			return 0;
		if (!inject_alive(in))
			return fault_set(in->fault, ESRCH, FAULT_HELLO,
					 "the process ended during the attach");
		if (fifos_are_deleted(p) && ++gone > HELLO_TURNS)
			return fault_set(in->fault, EAGAIN, FAULT_HELLO,
					 "%s was deleted while the agent was being loaded", p->dir);
		if (fd.revents & POLLHUP) /* no writer has the FIFO open, poll(2): poll would return
					   * at once */
			inject_pause_ms(2);
	}
	return fault_set(in->fault, ETIMEDOUT, FAULT_HELLO,
			 "the agent was loaded but did not answer in time");
}

static void injector_answer(int result_fd, const struct inject_result *result, const int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)result, sizeof(*result) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fds) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	}
	(void)sendmsg(result_fd, &msg, MSG_NOSIGNAL);
}

static int inject_for_daemon(struct inject *in, const struct arguments *args)
{
	CLEANUP(fd_closep) int library_fd = open(args->library, O_RDONLY | O_CLOEXEC);
	struct placement p = PLACEMENT_NULL;
	struct inject_result result = { 0 };
	int r;

	in->fault = &result.fault;
	in->loads = true;
	in->may_cover = args->may_cover;
	if (library_fd < 0)
		r = fault_set(in->fault, errno, FAULT_PLACEMENT, "open %s: ", args->library);
	else
		r = inject_prepare(in);
	if (r == 0)
		r = place_begin(in, &p);
	if (r == 0)
		r = attach_begin(in); /* the JVM creates its socket while the library is written */
	if (r == 0)
		r = place(in, library_fd, args->quiet, args->pipe_bytes, &p);
	if (r == 0)
		r = forward_start(in, p.control_fd);
	if (r == 0)
		r = injector_load(in, &p);
	if (r == 0)
		r = wait_for_hello(in, &p);
	attach_abandon(in);
	snprintf(result.library, sizeof(result.library), "%.56s/%.66s", p.dir, p.library);
	result.strategy = p.strategy;
	/* the names are removed even after a success: the agent has both FIFOs open, and the JVM
	 * has mapped the library */
	place_remove(in, &p);
	if (r == 0)
		attach_restore_socket(in);
	cover_end(in);
	result.left = in->left;
	if (r == 0 && args->pipes_fd >= 0) {
		r = receive_send_pipes(args->pipes_fd, p.events_fd, p.control_fd);
		if (r < 0)
			fault_set(&result.fault, -r, FAULT_INTERNAL,
				  "cannot hand the pipe to its receiver: ");
		injector_answer(args->result_fd, &result, NULL);
		return r < 0 ? 1 : 0;
	}
	injector_answer(args->result_fd, &result,
			r == 0 ? (int[2]){ p.events_fd, p.control_fd } : NULL);
	return r < 0 ? 1 : 0;
}

static int injector_cleanup(struct inject *in)
{
	struct fault f = { 0 };

	in->fault = &f;
	/* the files of a stopped process (EAGAIN) are removed too */
	if (inject_open(in) == 0 && (preflight_identity(in) == 0 || f.code == EAGAIN) &&
	    inject_alive(in)) {
		f = (struct fault){ 0 };
		if (cover_find(in) == 0) {
			place_cleanup(in);
			private_dir_cleanup(in);
		}
		attach_file_cleanup(in);
		cover_end(in);
	}
	return in->left ? INJECT_STATUS_LEFT : 0;
}

/* ---- arguments ------------------------------------------------------------------------------ */

static bool injector_number(const char *s, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && !errno;
}

static bool parse_settings(struct arguments *args, char **argv)
{
	uint64_t n;

	for (; *argv; argv++) {
		if (strcmp(*argv, "quiet=0") == 0)
			args->quiet = false;
		else if (strcmp(*argv, "over_tmp=1") == 0)
			args->may_cover = true;
		else if (strncmp(*argv, "deadline_ms=", 12) == 0 &&
			 injector_number(*argv + 12, &n) && n <= DEADLINE_MS_MAX)
			args->deadline_ms = n;
		else if (strncmp(*argv, "pipes_fd=", 9) == 0 && injector_number(*argv + 9, &n) &&
			 n < 1024)
			args->pipes_fd = (int)n;
		else if (strcmp(*argv, "known=1") == 0)
			args->known = true;
		else if (strncmp(*argv, "uid=", 4) == 0 && injector_number(*argv + 4, &n) &&
			 n < UINT32_MAX)
			args->uid = (uid_t)n;
		else if (strncmp(*argv, "pipe=", 5) == 0 && injector_number(*argv + 5, &n) &&
			 n <= 1u << 30)
			args->pipe_bytes = n;
		else
			return false;
	}
	return true;
}

static int wrong_deadline(void)
{
	return commands_wrong(
		"--deadline takes a number of seconds from 1 to %d, or a duration such as 1m30s",
		DEADLINE_MS_MAX / 1000);
}

/* Prints which option getopt has refused. Returns -1. */
static int wrong_option(char **argv)
{
	const char *word = argv[optind - 1];

	if (strncmp(word, "--deadline", 10) == 0)
		return wrong_deadline();
	return commands_wrong("%.40s is not an option", word);
}

static int read_deadline(struct arguments *args, const char *word)
{
	uint64_t ns;

	if (!word)
		return 0;
	if (value_length_ns(word, &ns) < 0 || ns < NS_PER_S || ns > DEADLINE_MS_MAX * NS_PER_MS)
		return wrong_deadline();
	args->deadline_ms = ns / NS_PER_MS;
	return 0;
}

/* -1 = continue with the argument at optind, else the exit status. */
static int injector_parse_options(struct arguments *args, int argc, char **argv)
{
	struct command_line line = { 0 };
	uint64_t n;

	if (argc > 1 && argv[1][0] == '-' && argv[1][1] >= '0' && argv[1][1] <= '9') {
		commands_wrong("\"%.40s\" is not a pid", argv[1]);
		return 2;
	}
	opterr = 0;
	switch (usage_parse(&usage_inject, argc, argv, true, &line)) {
	case USAGE_SHOW_HELP:
		return commands_help(false);
	case USAGE_SHOW_VERSION:
		puts("kindling-inject " KINDLING_VERSION);
		return 0;
	case USAGE_WRONG:
		wrong_option(argv);
		return 2;
	case USAGE_GO_ON:
		break;
	}
	if (optind == argc)
		return commands_help(true);
	if (line.result_fd && !injector_number(line.result_fd, &n)) {
		commands_wrong("--result-fd is not an option");
		return 2;
	}
	if (line.result_fd)
		args->result_fd = (int)n;
	return read_deadline(args, line.deadline) < 0 ? 2 : -1;
}

/* @argv: START_TIME, a command and its arguments, see result.h and receive.h. */
static int run_for_daemon(struct inject *in, struct arguments *args, char **argv)
{
	if (!argv[0] || !argv[1] || !injector_number(argv[0], &in->start_time))
		return 2;
	if (strcmp(argv[1], "cleanup") == 0)
		return injector_cleanup(in);
	if (strcmp(argv[1], "receive") == 0)
		return receive_attached(args->result_fd, STDIN_FILENO);
	if (strcmp(argv[1], "reattach") == 0 && parse_settings(args, argv + 2))
		return receive_reattached(in, args->result_fd, args->pipe_bytes, args->uid,
					  args->known);
	if (!argv[2] || strcmp(argv[1], "attach") != 0 || !parse_settings(args, argv + 3))
		return 2;
	args->library = argv[2];
	set_deadline(in, args->deadline_ms);
	return inject_for_daemon(in, args);
}

int main(int argc, char **argv)
{
	struct arguments args = { .result_fd = -1,
				  .pipes_fd = -1,
				  .deadline_ms = DEADLINE_MS_DEFAULT,
				  .pipe_bytes = PIPE_BYTES_DEFAULT,
				  .quiet = true };
	struct inject in = INJECT_NULL;
	uint64_t n;
	int at, r;

	r = injector_parse_options(&args, argc, argv);
	if (r >= 0)
		return r;
	at = optind;
	if (strcmp(argv[at], "filters") == 0) {
		signal(SIGPIPE, SIG_IGN);
		return filters_serve(argv[at + 1]);
	}
	if (!injector_number(argv[at], &n) || n == 0 || n > INT32_MAX) {
		commands_wrong("\"%.40s\" is not a pid", argv[at]);
		return 2;
	}
	in.pid = (pid_t)n;
	at++;
	signal(SIGPIPE, SIG_IGN);
	set_deadline(&in, args.deadline_ms);
	return args.result_fd < 0 ? commands_run(&in, argv + at)
				  : run_for_daemon(&in, &args, argv + at);
}
