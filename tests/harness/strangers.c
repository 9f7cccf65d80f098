/*
 * What an ordinary user of a container can do to whoever profiles it, all at once. Processes look
 * like JVMs: libjvm.so is in their maps, they catch SIGQUIT and speak the attach protocol. To the
 * agent's START they answer with the secret of their attach, and with frames that are mostly valid:
 *
 *   mutant    every kind of frame; in one of 50 a few bits are others
 *   resets    definitions, waits that go on, RESET, and again
 *   contexts  new trace ids for the same numbers, in samples of all events
 *   offcpu    times off the CPU of invented threads, virtual threads, stacks and states
 *   deep      stacks as deep as none is
 *   files     mapped files that are FIFOs, devices, sockets, links in a circle, /proc/self/mem
 *   odd       names that would be markup, paths, escapes or half a character in an answer, and
 * times, sums and states as large as numbers are talks     FAULT and NOTE without end half half a
 * frame, and never the rest ends      valid frames, then another program in the process's place
 *
 * Others never answer on their attach socket, answer with garbage, a byte at a time, or without
 * end; execute themselves all the time with long environments under the name java; make and remove
 * what kindling makes in /tmp.
 *
 *   strangers all|MANNER...    says READY when it begins, and runs until it is killed
 */
#include "tests/harness/strangers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the attach ------------------------------------------------------------------------------ */

static void on_sigquit(int signo)
{
	(void)signo;
}

static int look_like_a_jvm(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/jvm-%d", (int)getpid());
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "/tmp/jvm-%d/libjvm.so", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	(void)signal(SIGQUIT, on_sigquit);
	if (fd < 0 || ftruncate(fd, 4096) < 0 ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED)
		return -1;
	close(fd);
	return prctl(PR_SET_NAME, "java");
}

static int listen_to_attaches(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/.java_pid%d", (int)getpid());
	(void)unlink(a.sun_path);
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	(void)chmod(a.sun_path, 0600);
	return listen(s, 8) < 0 ? -1 : s;
}

/* Opens what a "load" names: "events=PATH,control=PATH" is its last word. */
static int open_pipes(const char *request, size_t len, int *ret_events, int *ret_control)
{
	const char *options = NULL;
	char events[512] = "", control[512] = "";

	for (size_t i = 0; i + 7 < len; i++)
		if (memcmp(request + i, "events=", 7) == 0)
			options = request + i;
	if (!options || sscanf(options, "events=%511[^,],control=%511s", events, control) != 2)
		return -1;
	*ret_control = open(control, O_RDWR | O_CLOEXEC);
	*ret_events = open(events, O_WRONLY | O_CLOEXEC);
	return *ret_control < 0 || *ret_events < 0 ? -1 : 0;
}

static size_t read_request(int client, char *buf, size_t size)
{
	size_t len = 0;
	int ends_left = 5;

	while (len < size - 1 && ends_left > 0) {
		ssize_t n = read(client, buf + len, size - 1 - len);

		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			ends_left -= buf[len + (size_t)i] == '\0';
		len += (size_t)n;
	}
	buf[len] = '\0';
	return len;
}

/* Waits for START, of the attach or of a later session; that of the attach has the secret. */
static void wait_for_start(struct voice *v, int control)
{
	static uint8_t buf[2 * WIRE_FRAME_MAX];
	struct wire_start start;
	struct wire_frame f;
	size_t len = 0;

	for (;;) {
		ssize_t n = read(control, buf + len, sizeof(buf) - len);
		int size;

		if (n <= 0)
			_exit(0);
		len += (size_t)n;
		while ((size = wire_peek(buf, len, &f)) > 0) {
			if (f.type == WIRE_START && wire_get_start(&f, &start) == 0) {
				if (start.secret.len == sizeof(v->secret))
					memcpy(v->secret, start.secret.p, sizeof(v->secret));
				v->session = start.session;
				return;
			}
			len -= (size_t)size;
			memmove(buf, buf + size, len);
		}
		if (size < 0)
			_exit(0);
	}
}

static void be_agent(void (*manner)(struct voice *v))
{
	static struct voice v;
	static char request[4096];
	int s = look_like_a_jvm() < 0 ? -1 : listen_to_attaches(), control = -1;

	for (;;) {
		int client = s < 0 ? -1 : accept(s, NULL, NULL);
		size_t len;

		if (client < 0 && errno == EINTR)
			continue;
		if (client < 0)
			_exit(1);
		len = read_request(client, request, sizeof(request));
		if (open_pipes(request, len, &v.fd, &control) < 0) {
			(void)!write(client, "0\n17.0.1\n", 9);
			close(client);
			continue;
		}
		wait_for_start(&v, control);
		voice_greet(&v);
		(void)!write(client, "0\nreturn code: 0\n", 17);
		close(client);
		manner(&v);
		_exit(0);
	}
}

/* ---- others ---------------------------------------------------------------------------------- */

enum lie { SILENT, GARBAGE, DRIP, ENDLESS, LIE_COUNT };

static void lie(enum lie how, int client)
{
	char junk[4096];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (char)strangers_any(256);
	if (how == SILENT)
		strangers_pause_ms(3600 * 1000);
	if (how == GARBAGE)
		(void)!write(client, junk, sizeof(junk));
	while (how == DRIP && write(client, "0", 1) > 0)
		strangers_pause_ms(100);
	while (how == ENDLESS && write(client, junk, sizeof(junk)) > 0)
		;
	close(client);
}

static void be_liar(void)
{
	int s = look_like_a_jvm() < 0 ? -1 : listen_to_attaches();

	for (;;) {
		int client = s < 0 ? -1 : accept(s, NULL, NULL);

		if (client < 0 && errno != EINTR)
			_exit(1);
		if (client >= 0)
			lie((enum lie)strangers_any(LIE_COUNT), client);
	}
}

/* Executes itself with half a megabyte of environment; as "java", with libjvm.so, for some ms. */
static void churn(void)
{
	static char big[120 << 10];
	char *const argv[] = { "java", "churn", NULL };
	char *env[6] = { NULL };

	(void)look_like_a_jvm();
	memset(big, 'A' + (int)strangers_any(26), sizeof(big) - 1);
	memcpy(big, "OTEL_SERVICE_NAME=", 18);
	for (int i = 0; i < 4; i++)
		env[i] = big;
	env[4] = "JAVA_TOOL_OPTIONS=@/tmp/w/fifo -XX:Flags=/tmp/w/fifo -javaagent:/tmp/w/circle";
	strangers_pause_ms((long)strangers_any(300));
	if (strangers_any(4) == 0)
		_exit(0);
	execve("/proc/self/exe", argv, env);
	_exit(1);
}

static void race_in_tmp(void)
{
	char name[64];

	for (;; strangers_pause_ms(1)) {
		uint32_t pid = strangers_any(400);

		(void)mkdir("/tmp/kindling", 0777);
		(void)symlink("/etc", "/tmp/kindling/0.1.0");
		snprintf(name, sizeof(name), "/tmp/.attach_pid%u", pid);
		(void)symlink("/tmp/w/fifo", name);
		(void)unlink(name);
		(void)mkfifo(name, 0666);
		(void)unlink(name);
		(void)unlink("/tmp/kindling/0.1.0");
		(void)rmdir("/tmp/kindling");
		(void)symlink("/tmp/w/circle", "/tmp/kindling");
		(void)unlink("/tmp/kindling");
	}
}

static void make_odd_files(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/tmp/w/socket" };
	int fd;

	(void)mkdir("/tmp/w", 0777);
	(void)mkfifo("/tmp/w/fifo", 0666);
	(void)symlink("/tmp/w/circle", "/tmp/w/circle");
	(void)mkdir("/tmp/w/long", 0777);
	(void)bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&a, sizeof(a));
	close(open("/tmp/w/empty", O_CREAT | O_WRONLY, 0666));
	fd = open("/tmp/w/hole", O_CREAT | O_WRONLY, 0666);
	(void)!ftruncate(fd, 1ll << 40);
	close(fd);
	fd = open("/tmp/w/elf", O_CREAT | O_WRONLY, 0777);
	for (int i = 0; i < 4096; i++) {
		uint32_t word = i == 0 ? 0x464c457f : strangers_any(~0u);

		(void)!write(fd, &word, sizeof(word));
	}
	close(fd);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*behave)(void);
	int n;
} others[] = {
	{ "liar", be_liar, 6 },
	{ "churn", churn, 4 },
	{ "race", race_in_tmp, 1 },
};
#define OTHERS	 (sizeof(others) / sizeof(others[0]))
#define CHILDREN 64

static const char *manner_name(size_t of)
{
	return of < strangers_n_manners ? strangers_manners[of].name
					: others[of - strangers_n_manners].name;
}

static int manner_number(size_t of)
{
	return of < strangers_n_manners ? strangers_manners[of].n
					: others[of - strangers_n_manners].n;
}

/* @of: first come the agents' manners, then the others'. */
static pid_t begin_one(size_t of)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	strangers_seed = strangers_now_ns() ^ (uint64_t)getpid() << 32;
	if (of < strangers_n_manners)
		be_agent(strangers_manners[of].speak);
	others[of - strangers_n_manners].behave();
	_exit(0);
}

static bool is_asked_for(const char *name, char **argv)
{
	for (; *argv; argv++)
		if (strcmp(*argv, "all") == 0 || strcmp(*argv, name) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct {
		pid_t pid;
		size_t of;
	} children[CHILDREN];
	int n = 0;

	if (argc == 2 && strcmp(argv[0], "java") == 0) { /* churn() has executed it */
		strangers_seed = strangers_now_ns();
		churn();
	}
	make_odd_files();
	puts("READY\nline 0\nline 1");
	fflush(stdout);
	while (access("/tmp/go", F_OK) < 0)
		strangers_pause_ms(50);
	for (size_t i = 0; i < strangers_n_manners + OTHERS; i++)
		for (int k = 0; k < manner_number(i) && is_asked_for(manner_name(i), argv + 1); k++)
			children[n].of = i, children[n++].pid = begin_one(i);
	/* who ended comes again under another number; not as fast as it could */
	for (;; strangers_pause_ms(20)) {
		pid_t ended = waitpid(-1, NULL, 0);

		for (int i = 0; i < n; i++)
			if (children[i].pid == ended)
				children[i].pid = begin_one(children[i].of);
	}
}
