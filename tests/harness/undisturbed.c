/* See undisturbed.h. */
#include "tests/harness/undisturbed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/ground/clock.h"

#define WAIT_NS	   (3 * NS_PER_MS)
#define PIPE_BYTES (200u << 10)
#define SEND_BYTES (8u << 20)
#define ZERO_BYTES (16u << 20)
#define FILE_BYTES (1u << 16)

static char *bulk; /* ZERO_BYTES */

/* ---- the other end --------------------------------------------------------------------------- */

/* A thread that ends each wait after a short time. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void (*what)(void);
	bool busy;
} other = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, false };

static void nap(uint64_t ns)
{
	struct timespec ts = { 0, (long)ns };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static void *be_the_other(void *unused)
{
	sigset_t set;

	(void)unused;
	/* so that this thread is not the one that is sampled */
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (;;) {
		pthread_mutex_lock(&other.lock);
		while (!other.what)
			pthread_cond_wait(&other.changed, &other.lock);
		pthread_mutex_unlock(&other.lock);
		nap(WAIT_NS);
		other.what();
		pthread_mutex_lock(&other.lock);
		other.what = NULL;
		other.busy = false;
		pthread_cond_broadcast(&other.changed);
		pthread_mutex_unlock(&other.lock);
	}
	return NULL;
}

static void later(void (*what)(void))
{
	pthread_mutex_lock(&other.lock);
	other.what = what;
	other.busy = true;
	pthread_cond_broadcast(&other.changed);
	pthread_mutex_unlock(&other.lock);
}

static void wait_for_other(void)
{
	pthread_mutex_lock(&other.lock);
	while (other.busy)
		pthread_cond_wait(&other.changed, &other.lock);
	pthread_mutex_unlock(&other.lock);
}

/* ---- what is waited on ----------------------------------------------------------------------- */

static int pipe_fds[2], tcp[2], udp[2], un[2], listener, epoll_fd, event_fd, timer_fd;
static int queue, semaphores, lock_fds[2], file_fd, direct_fd, full_listener;
static struct sockaddr_in tcp_address;
static struct sockaddr_un full_address;
static sem_t sem;
static uint32_t word;

static void feed_pipe(void)
{
	(void)!write(pipe_fds[1], "x", 1);
}

static void feed_event(void)
{
	uint64_t one = 1;

	(void)!write(event_fd, &one, sizeof(one));
}

static void feed_tcp(void)
{
	(void)send(tcp[1], "x", 1, 0);
}

static void feed_udp(void)
{
	(void)send(udp[1], "x", 1, 0);
}

static void feed_un(void)
{
	(void)send(un[1], "x", 1, 0);
}

static void feed_in_parts(void)
{
	(void)send(tcp[1], "1234", 4, 0);
	nap(WAIT_NS);
	(void)send(tcp[1], "5678", 4, 0);
}

static void wake(void)
{
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void post(void)
{
	sem_post(&sem);
}

static void call_listener(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)connect(fd, (struct sockaddr *)&tcp_address, sizeof(tcp_address));
	close(fd);
}

static void drain(int fd, size_t bytes, size_t at_once)
{
	static char buf[1 << 16];

	while (bytes) {
		size_t want = bytes < at_once ? bytes : at_once;
		ssize_t n = read(fd, buf, want < sizeof(buf) ? want : sizeof(buf));

		if (n <= 0)
			return;
		bytes -= (size_t)n;
	}
}

static void drain_pipe(void)
{
	drain(pipe_fds[0], PIPE_BYTES / 2, 4096);
	nap(WAIT_NS);
	drain(pipe_fds[0], PIPE_BYTES - PIPE_BYTES / 2, 4096);
}

static void drain_tcp(void)
{
	drain(tcp[1], SEND_BYTES / 2, 1 << 16);
	nap(WAIT_NS);
	drain(tcp[1], SEND_BYTES - SEND_BYTES / 2, 1 << 16);
}

static void tell(void)
{
	const struct {
		long type;
		char text[4];
	} m = { 1, "abc" };

	(void)msgsnd(queue, &m, sizeof(m.text), 0);
}

static void unlock(void)
{
	flock(lock_fds[1], LOCK_UN);
}

static void accept_full(void)
{
	close(accept(full_listener, NULL, NULL));
}

static int listener_new(void)
{
	socklen_t len = sizeof(tcp_address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	tcp_address = (struct sockaddr_in){ .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(fd, (struct sockaddr *)&tcp_address, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&tcp_address, &len) < 0)
		_exit(10);
	return fd;
}

static void connect_udp(void)
{
	struct sockaddr_in a[2];
	socklen_t len = sizeof(a[0]);

	for (int i = 0; i < 2; i++) {
		udp[i] = socket(AF_INET, SOCK_DGRAM, 0);
		a[i] = (struct sockaddr_in){ .sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		if (bind(udp[i], (struct sockaddr *)&a[i], len) < 0 ||
		    getsockname(udp[i], (struct sockaddr *)&a[i], &len) < 0)
			_exit(11);
	}
	for (int i = 0; i < 2; i++)
		(void)connect(udp[i], (struct sockaddr *)&a[!i], len);
}

/* A listener with a backlog of one, which is full. */
static void fill_listener(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	full_listener = socket(AF_UNIX, SOCK_STREAM, 0);
	full_address.sun_family = AF_UNIX;
	snprintf(full_address.sun_path + 1, sizeof(full_address.sun_path) - 1, "kindling-test-%d",
		 (int)getpid());
	if (bind(full_listener, (struct sockaddr *)&full_address, sizeof(full_address)) < 0 ||
	    listen(full_listener, 0) < 0 ||
	    connect(fd, (struct sockaddr *)&full_address, sizeof(full_address)) < 0)
		_exit(12);
}

static void open_files(void)
{
	char path[] = "/var/tmp/kindling-test-XXXXXX";

	file_fd = mkstemp(path);
	if (file_fd < 0 || write(file_fd, bulk, FILE_BYTES) != (ssize_t)FILE_BYTES)
		_exit(13);
	direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC); /* -1 where there is none */
	for (int i = 0; i < 2; i++)
		lock_fds[i] = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
}

static void open_all(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	bulk = aligned_alloc(4096, ZERO_BYTES);
	memset(bulk, 1, ZERO_BYTES);
	if (pipe(pipe_fds) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, un) < 0)
		_exit(14);
	listener = listener_new();
	tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(tcp[0], (struct sockaddr *)&tcp_address, sizeof(tcp_address)) < 0)
		_exit(15);
	tcp[1] = accept(listener, NULL, NULL);
	connect_udp();
	fill_listener();
	event_fd = eventfd(0, 0);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, 0);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd, &event);
	queue = msgget(IPC_PRIVATE, 0600);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	sem_init(&sem, 0, 0);
	open_files();
}

static void close_ipc(void)
{
	(void)msgctl(queue, IPC_RMID, NULL);
	(void)semctl(semaphores, 0, IPC_RMID);
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* Checks @r of a call that should return @want. */
static enum undisturbed_result judge(long r, long want)
{
	if (r == want)
		return UNDISTURBED_FINE;
	if (r < 0)
		return errno == EINTR ? UNDISTURBED_CUT : UNDISTURBED_WRONG;
	return UNDISTURBED_SHORT;
}

/* Checks @r of a call that should fail with @error. */
static enum undisturbed_result judge_error(long r, int error)
{
	if (r >= 0)
		return UNDISTURBED_WRONG;
	return errno == error	? UNDISTURBED_FINE
	       : errno == EINTR ? UNDISTURBED_CUT
				: UNDISTURBED_WRONG;
}

static struct timespec wait_time(void)
{
	return (struct timespec){ 0, WAIT_NS };
}

static struct timespec wait_until(clockid_t clock)
{
	uint64_t ns = clock_ns(clock) + WAIT_NS;

	return (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
}

static enum undisturbed_result with_timeout(int fd, uint64_t ns, long (*call)(int), long want,
					    int error)
{
	struct timeval tv = { (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S / 1000) }, none = { 0 };
	enum undisturbed_result result;
	long r;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	r = call(fd);
	result = error ? judge_error(r, error) : judge(r, want);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	return result;
}

static long recv_one(int fd)
{
	char c;

	return recv(fd, &c, 1, 0);
}

static long accept_one(int fd)
{
	int got = accept(fd, NULL, NULL);

	if (got >= 0)
		close(got);
	return got < 0 ? -1 : 0;
}

static enum undisturbed_result call_nanosleep(void)
{
	struct timespec ts = wait_time();

	return judge(nanosleep(&ts, NULL), 0);
}

static enum undisturbed_result call_clock_nanosleep(void)
{
	struct timespec ts = wait_until(CLOCK_MONOTONIC);

	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	return judge(errno ? -1 : 0, 0);
}

static enum undisturbed_result call_futex_timeout(void)
{
	struct timespec ts = wait_time();

	word = 0;
	return judge_error(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0),
			   ETIMEDOUT);
}

static enum undisturbed_result call_futex_until(void)
{
	struct timespec ts = wait_until(CLOCK_MONOTONIC);

	word = 0;
	return judge_error(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, ~0u),
			   ETIMEDOUT);
}

static enum undisturbed_result call_futex_woken(void)
{
	word = 0;
	later(wake);
	return judge(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0), 0);
}

static enum undisturbed_result call_sem_timedwait(void)
{
	struct timespec ts = wait_until(CLOCK_REALTIME);

	return judge_error(sem_timedwait(&sem, &ts), ETIMEDOUT);
}

static enum undisturbed_result call_sem_wait(void)
{
	later(post);
	return judge(sem_wait(&sem), 0);
}

static enum undisturbed_result call_cond_timedwait(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec ts = wait_until(CLOCK_REALTIME);

	pthread_mutex_lock(&lock);
	errno = pthread_cond_timedwait(&cond, &lock, &ts);
	pthread_mutex_unlock(&lock);
	return judge_error(-1, ETIMEDOUT);
}

static enum undisturbed_result call_epoll_timeout(void)
{
	struct epoll_event e;

	return judge(epoll_wait(epoll_fd, &e, 1, 3), 0);
}

static enum undisturbed_result call_epoll_event(void)
{
	struct epoll_event e;
	uint64_t n;
	enum undisturbed_result r;

	later(feed_event);
	r = judge(epoll_wait(epoll_fd, &e, 1, -1), 1);
	wait_for_other();
	(void)!read(event_fd, &n, sizeof(n));
	return r;
}

static enum undisturbed_result call_poll_timeout(void)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };

	return judge(poll(&p, 1, 3), 0);
}

static enum undisturbed_result call_ppoll_timeout(void)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };
	struct timespec ts = wait_time();

	return judge(ppoll(&p, 1, &ts, NULL), 0);
}

static enum undisturbed_result call_select_timeout(void)
{
	struct timeval tv = { 0, WAIT_NS / 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	return judge(select(pipe_fds[0] + 1, &set, NULL, NULL, &tv), 0);
}

static enum undisturbed_result call_pselect_timeout(void)
{
	struct timespec ts = wait_time();
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	return judge(pselect(pipe_fds[0] + 1, &set, NULL, NULL, &ts, NULL), 0);
}

static enum undisturbed_result call_poll_event(void)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };
	enum undisturbed_result r;
	char c;

	later(feed_pipe);
	r = judge(poll(&p, 1, -1), 1);
	(void)!read(pipe_fds[0], &c, 1);
	return r;
}

static enum undisturbed_result call_select_event(void)
{
	enum undisturbed_result r;
	fd_set set;
	char c;

	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	later(feed_pipe);
	r = judge(select(pipe_fds[0] + 1, &set, NULL, NULL, NULL), 1);
	(void)!read(pipe_fds[0], &c, 1);
	return r;
}

static enum undisturbed_result call_read_pipe(void)
{
	char c;

	later(feed_pipe);
	return judge(read(pipe_fds[0], &c, 1), 1);
}

static enum undisturbed_result call_read_eventfd(void)
{
	uint64_t n;

	later(feed_event);
	return judge(read(event_fd, &n, sizeof(n)), sizeof(n));
}

static enum undisturbed_result call_read_timerfd(void)
{
	struct itimerspec in = { .it_value = wait_time() };
	uint64_t n;

	timerfd_settime(timer_fd, 0, &in, NULL);
	return judge(read(timer_fd, &n, sizeof(n)), sizeof(n));
}

static enum undisturbed_result call_recv_tcp(void)
{
	later(feed_tcp);
	return judge(recv_one(tcp[0]), 1);
}

static enum undisturbed_result call_recv_udp(void)
{
	later(feed_udp);
	return judge(recv_one(udp[0]), 1);
}

static enum undisturbed_result call_recv_unix(void)
{
	later(feed_un);
	return judge(recv_one(un[0]), 1);
}

static enum undisturbed_result call_accept(void)
{
	later(call_listener);
	return judge(accept_one(listener), 0);
}

static enum undisturbed_result call_unix_timeout(void)
{
	return with_timeout(un[0], WAIT_NS, recv_one, 0, EAGAIN);
}

static enum undisturbed_result call_unix_data(void)
{
	later(feed_un);
	return with_timeout(un[0], 60 * NS_PER_S, recv_one, 1, 0);
}

static enum undisturbed_result call_tcp_timeout(void)
{
	return with_timeout(tcp[0], WAIT_NS, recv_one, 0, EAGAIN);
}

static enum undisturbed_result call_tcp_data(void)
{
	later(feed_tcp);
	return with_timeout(tcp[0], 60 * NS_PER_S, recv_one, 1, 0);
}

static enum undisturbed_result call_udp_timeout(void)
{
	return with_timeout(udp[0], WAIT_NS, recv_one, 0, EAGAIN);
}

static enum undisturbed_result call_udp_data(void)
{
	later(feed_udp);
	return with_timeout(udp[0], 60 * NS_PER_S, recv_one, 1, 0);
}

static enum undisturbed_result call_accept_timeout(void)
{
	return with_timeout(listener, WAIT_NS, accept_one, 0, EAGAIN);
}

static enum undisturbed_result call_accept_connection(void)
{
	later(call_listener);
	return with_timeout(listener, 60 * NS_PER_S, accept_one, 0, 0);
}

static enum undisturbed_result call_recv_all(void)
{
	char buf[8];
	ssize_t n;

	later(feed_in_parts);
	n = recv(tcp[0], buf, sizeof(buf), MSG_WAITALL);
	if (n >= 0)
		drain(tcp[0], sizeof(buf) - (size_t)n, sizeof(buf));
	return judge(n, sizeof(buf));
}

/* Transfers the rest that an interrupted call left out, because the other end waits for it. */
static void write_rest(int fd, ssize_t written, size_t bytes)
{
	while (written < (ssize_t)bytes) {
		ssize_t n = write(fd, bulk, bytes - (size_t)(written < 0 ? 0 : written));

		if (n < 0 && errno != EINTR)
			return;
		written = (written < 0 ? 0 : written) + (n < 0 ? 0 : n);
	}
}

static enum undisturbed_result call_write_pipe(void)
{
	enum undisturbed_result r;
	ssize_t n;

	later(drain_pipe);
	n = write(pipe_fds[1], bulk, PIPE_BYTES);
	r = judge(n, PIPE_BYTES);
	write_rest(pipe_fds[1], n, PIPE_BYTES);
	return r;
}

static enum undisturbed_result call_send_tcp(void)
{
	enum undisturbed_result r;
	ssize_t n;

	later(drain_tcp);
	n = send(tcp[0], bulk, SEND_BYTES, 0);
	r = judge(n, SEND_BYTES);
	write_rest(tcp[0], n, SEND_BYTES);
	return r;
}

static enum undisturbed_result call_sigtimedwait(void)
{
	struct timespec ts = wait_time();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return judge_error(sigtimedwait(&set, NULL, &ts), EAGAIN);
}

static enum undisturbed_result call_semtimedop(void)
{
	struct sembuf op = { 0, -1, 0 };
	struct timespec ts = wait_time();

	return judge_error(semtimedop(semaphores, &op, 1, &ts), EAGAIN);
}

static enum undisturbed_result call_msgrcv(void)
{
	struct {
		long type;
		char text[16];
	} m;

	later(tell);
	return judge(msgrcv(queue, &m, sizeof(m.text), 0, 0), 4);
}

static enum undisturbed_result call_waitpid(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		nap(WAIT_NS);
		syscall(SYS_exit, 0);
	}
	return judge(waitpid(pid, NULL, 0), pid);
}

static enum undisturbed_result call_flock(void)
{
	enum undisturbed_result r;

	flock(lock_fds[1], LOCK_EX);
	later(unlock);
	r = judge(flock(lock_fds[0], LOCK_EX), 0);
	flock(lock_fds[0], LOCK_UN);
	return r;
}

static enum undisturbed_result call_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	enum undisturbed_result r;

	later(accept_full);
	r = judge(connect(fd, (struct sockaddr *)&full_address, sizeof(full_address)), 0);
	wait_for_other();
	close(fd);
	return r;
}

static enum undisturbed_result call_fsync(void)
{
	(void)!pwrite(file_fd, bulk, FILE_BYTES, 0);
	return judge(fsync(file_fd), 0);
}

static enum undisturbed_result call_read_direct(void)
{
	if (direct_fd < 0)
		return UNDISTURBED_FINE;
	return judge(pread(direct_fd, bulk, FILE_BYTES, 0), FILE_BYTES);
}

static enum undisturbed_result call_read_zero(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	return judge(read(fd, bulk, ZERO_BYTES), ZERO_BYTES);
}

#define CALL(name)                 \
	{                          \
#name, call_##name \
	}
static const struct {
	const char *name;
	enum undisturbed_result (*call)(void);
} calls[] = {
	CALL(nanosleep),
	CALL(clock_nanosleep),
	CALL(futex_timeout),
	CALL(futex_until),
	CALL(futex_woken),
	CALL(sem_timedwait),
	CALL(sem_wait),
	CALL(cond_timedwait),
	CALL(epoll_timeout),
	CALL(epoll_event),
	CALL(poll_timeout),
	CALL(ppoll_timeout),
	CALL(select_timeout),
	CALL(pselect_timeout),
	CALL(poll_event),
	CALL(select_event),
	CALL(read_pipe),
	CALL(read_eventfd),
	CALL(read_timerfd),
	CALL(recv_tcp),
	CALL(recv_udp),
	CALL(recv_unix),
	CALL(accept),
	CALL(unix_timeout),
	CALL(unix_data),
	CALL(tcp_timeout),
	CALL(tcp_data),
	CALL(udp_timeout),
	CALL(udp_data),
	CALL(accept_timeout),
	CALL(accept_connection),
	CALL(recv_all),
	CALL(write_pipe),
	CALL(send_tcp),
	CALL(sigtimedwait),
	CALL(semtimedop),
	CALL(msgrcv),
	CALL(waitpid),
	CALL(flock),
	CALL(connect),
	CALL(fsync),
	CALL(read_direct),
	CALL(read_zero),
};
_Static_assert(sizeof(calls) / sizeof(calls[0]) == UNDISTURBED_CALLS,
	       "the calls of docs/performance.md");

/* ---- the caller ------------------------------------------------------------------------------ */

void undisturbed_open(void)
{
	pthread_t thread;

	open_all();
	pthread_create(&thread, NULL, be_the_other, NULL);
}

void undisturbed_run(uint32_t results[UNDISTURBED_CALLS][UNDISTURBED_RESULTS])
{
	for (size_t i = 0; i < UNDISTURBED_CALLS; i++)
		for (int n = 0; n < UNDISTURBED_RUNS; n++) {
			results[i][calls[i].call()]++;
			wait_for_other();
		}
}

void undisturbed_close(void)
{
	close_ipc();
}

const char *undisturbed_name(unsigned i)
{
	return calls[i].name;
}
