/*
 * A process that looks like a JVM and means no good: libjvm.so is in its maps, it catches SIGQUIT,
 * and listens on the attach socket. What it does with a client is its MODE:
 *
 *   silent    accepts and says nothing          endless   sends bytes without end
 *   drip      one byte, ten times a second      deaf      never accepts, its backlog full
 *   closes    closes at once                    lies      says that the agent was loaded
 *   child     a child of it listens             orphan    who listened has ended
 *
 *   fake_jvm MODE     runs until it is killed
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void on_sigquit(int signo)
{
	(void)signo;
}

static int map_libjvm(void)
{
	int fd = open("/tmp/libjvm.so", O_RDWR | O_CREAT, 0700);

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return -1;
	return mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0;
}

static int make_socket(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/.java_pid%d", (int)getpid());
	(void)unlink(addr.sun_path);
	if (bind(s, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -1;
	return chmod(addr.sun_path, 0600) < 0 ? -1 : s;
}

static void serve(const char *mode, int client)
{
	static char junk[65536];

	memset(junk, '0', sizeof(junk));
	if (strcmp(mode, "endless") == 0) {
		while (write(client, junk, sizeof(junk)) > 0)
			;
	} else if (strcmp(mode, "drip") == 0) {
		while (write(client, "0", 1) > 0)
			pause_ms(100);
	} else if (strcmp(mode, "lies") == 0) {
		(void)!read(client, junk, sizeof(junk));
		(void)!write(client, "0\nreturn code: 0\n", 17);
	} else if (strcmp(mode, "silent") == 0 || strcmp(mode, "child") == 0 ||
		   strcmp(mode, "orphan") == 0) {
		pause_ms(3600 * 1000);
	}
	close(client);
}

static void listen_and_serve(const char *mode, int s)
{
	struct sockaddr_un addr;
	socklen_t len = sizeof(addr);

	if (strcmp(mode, "deaf") == 0) {
		(void)listen(s, 0);
		(void)getsockname(s, (struct sockaddr *)&addr, &len);
		(void)connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&addr, len);
		pause_ms(3600 * 1000);
	}
	(void)listen(s, 5);
	for (;;)
		serve(mode, accept(s, NULL, NULL));
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_sigquit };
	const char *mode = argc > 1 ? argv[1] : "silent";
	int s;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigaction(SIGQUIT, &action, NULL);
	s = make_socket();
	if (s < 0 || map_libjvm() < 0)
		return 1;
	if (strcmp(mode, "child") == 0 || strcmp(mode, "orphan") == 0) {
		pid_t child = fork();

		if (child == 0 && strcmp(mode, "child") == 0)
			listen_and_serve(mode, s);
		if (child == 0)
			_exit(listen(s, 5));
		if (strcmp(mode, "orphan") == 0)
			(void)waitpid(child, NULL, 0);
	}
	puts("READY\nline 0\nline 1");
	fflush(stdout);
	if (strcmp(mode, "orphan") == 0)
		for (;;)
			serve(mode, accept(s, NULL, NULL));
	if (strcmp(mode, "child") == 0)
		for (;;)
			pause_ms(1000);
	listen_and_serve(mode, s);
	return 0;
}
