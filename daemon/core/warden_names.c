/*
 * Requests to the container runtime's CRI socket, for kindling-names (docs/decisions/0036). A
 * process that can write to that socket can start any container. So no process that reads data of
 * others can write to it: the warden connects, sends a fixed request with an id in it, and passes
 * the connection to a program that can only read.
 *
 * A request is gRPC over HTTP/2 (RFC 9113), with only literals in the header block (RFC 7541), and
 * the method and message fields of CRI's runtime.v1. All of it is sent at once and nothing follows:
 * the flow-control windows are so large from the beginning that the answer needs no WINDOW_UPDATE.
 */
#include "daemon/core/warden_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"

#define NAMES_PER_S 1000

static int names_fd = -1; /* connected to the running kindling-names; -1 = none runs */

/* ---- the request ----------------------------------------------------------------------------- */

static const char *const methods[WARDEN_NAMES_COUNT] = {
	[WARDEN_NAMES_CONTAINER] = "/runtime.v1.RuntimeService/ListContainers",
	[WARDEN_NAMES_SANDBOX] = "/runtime.v1.RuntimeService/ListPodSandbox",
};

enum frame { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_SETTINGS = 4, FRAME_WINDOW_UPDATE = 8 };

#define END_STREAM	    1
#define END_HEADERS	    4
#define FIRST_WINDOW	    65535u /* initial window of a connection, RFC 9113, 6.9.2 */
#define INITIAL_WINDOW_SIZE 4 /* the setting, 6.5.2 */

struct names_request {
	uint8_t bytes[WARDEN_NAMES_REQUEST_MAX];
	size_t len;
};

static void names_put(struct names_request *w, const void *p, size_t len)
{
	memcpy(w->bytes + w->len, p,
	       len); /* the longest request fits, see warden_names_request() */
	w->len += len;
}

static void names_put_byte(struct names_request *w, unsigned byte)
{
	names_put(w, &(uint8_t){ (uint8_t)byte }, 1);
}

static void names_put_number(struct names_request *w, uint32_t n)
{
	n = htonl(n);
	names_put(w, &n, sizeof(n));
}

static void names_put_frame(struct names_request *w, size_t len, enum frame type, unsigned flags,
			    uint32_t stream)
{
	names_put_byte(w, (unsigned)len >> 16);
	names_put_byte(w, (unsigned)len >> 8 & 0xff);
	names_put_byte(w, (unsigned)len & 0xff);
	names_put_byte(w, type);
	names_put_byte(w, flags);
	names_put_number(w, stream);
}

/* A string literal without Huffman code, shorter than 127 bytes, RFC 7541, 5.2. */
static void names_put_text(struct names_request *w, const char *text)
{
	names_put_byte(w, (unsigned)strlen(text));
	names_put(w, text, strlen(text));
}

/* A header field that is not indexed, RFC 7541, 6.2.2. @number: of its name in the static table; 0
 * = the name @name follows. */
static void names_put_field(struct names_request *w, unsigned number, const char *name,
			    const char *value)
{
	if (number < 15) {
		names_put_byte(w, number);
	} else {
		names_put_byte(w, 15);
		names_put_byte(w, number - 15);
	}
	if (name)
		names_put_text(w, name);
	names_put_text(w, value);
}

static void names_put_headers(struct names_request *w, const char *method)
{
	struct names_request block = { .len = 0 };

	names_put_byte(&block, 0x83); /* :method: POST */
	names_put_byte(&block, 0x86); /* :scheme: http */
	names_put_field(&block, 4, NULL, method); /* :path */
	names_put_field(&block, 1, NULL, "localhost"); /* :authority */
	names_put_field(&block, 31, NULL, "application/grpc"); /* content-type */
	names_put_field(&block, 0, "te", "trailers");
	names_put_field(&block, 58, NULL, "kindling/" KINDLING_VERSION); /* user-agent */
	names_put_frame(w, block.len, FRAME_HEADERS, END_HEADERS, 1);
	names_put(w, block.bytes, block.len);
}

/* gRPC's flag and length, then a message whose field 1 is a filter, whose field 1 is the id. */
static void names_put_message(struct names_request *w, const char *id)
{
	unsigned len = (unsigned)strlen(id);

	names_put_frame(w, 5 + 4 + len, FRAME_DATA, END_STREAM, 1);
	names_put_byte(w, 0); /* not compressed */
	names_put_number(w, 4 + len);
	names_put_byte(w, 1 << 3 | 2);
	names_put_byte(w, 2 + len);
	names_put_byte(w, 1 << 3 | 2);
	names_put_byte(w, len);
	names_put(w, id, len);
}

size_t warden_names_request(enum warden_names what, const char *id,
			    uint8_t ret[WARDEN_NAMES_REQUEST_MAX])
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; /* RFC 9113, 3.4 */
	size_t len = strlen(id);
	struct names_request w = { .len = 0 };

	if (what >= WARDEN_NAMES_COUNT || len < 1 || len >= WARDEN_NAMES_ID_SIZE ||
	    strspn(id, "0123456789abcdef") != len)
		return 0;
	names_put(&w, preface, strlen(preface));
	names_put_frame(&w, 6, FRAME_SETTINGS, 0, 0);
	names_put_byte(&w, 0);
	names_put_byte(&w, INITIAL_WINDOW_SIZE);
	names_put_number(&w, WARDEN_NAMES_ANSWER_MAX);
	names_put_frame(&w, 4, FRAME_WINDOW_UPDATE, 0, 0);
	names_put_number(&w, WARDEN_NAMES_ANSWER_MAX - FIRST_WINDOW);
	names_put_headers(&w, methods[what]);
	names_put_message(&w, id);
	memcpy(ret, w.bytes, w.len);
	return w.len;
}

/* ---- the connection -------------------------------------------------------------------------- */

static int names_connect_to(int fd, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	return connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
}

/* Connects to the host's @path, through the root directory of the host's init, for a kindlingd that
 * runs in a container with hostPID. Symbolic links are resolved inside that root. */
static int names_connect_on_host(int fd, const char *path)
{
	CLEANUP(fd_closep)
	int root_dfd = open("/proc/1/root", O_PATH | O_DIRECTORY | O_CLOEXEC), at = -1;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char name[40];
	int r;

	if (root_dfd < 0)
		return -ENOENT;
	at = (int)syscall(SYS_openat2, root_dfd, path, &how, sizeof(how));
	if (at < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
	r = names_connect_to(fd, name);
	fd_close(at);
	return r;
}

/* Does not block: if the listener's queue is full, connect(2) fails with EAGAIN. */
static int names_connect_to_runtime(const char *path)
{
	CLEANUP(fd_closep)
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : names_connect_to(fd, path);

	if (r == -ENOENT)
		r = names_connect_on_host(fd, path);
	return r < 0 ? r : TAKE_FD(fd);
}

/* Limits the requests to NAMES_PER_S, even if an attacker controls the data process. */
static bool names_is_too_often(void)
{
	static uint64_t second_mono_s;
	static unsigned asked;
	uint64_t now_s = clock_mono_ns() / NS_PER_S;

	if (now_s != second_mono_s)
		asked = 0;
	second_mono_s = now_s;
	return asked++ >= NAMES_PER_S;
}

int warden_work_names(const char *path, enum warden_names what, const char *id, uint64_t number)
{
	uint8_t words[WARDEN_NAMES_REQUEST_MAX];
	size_t len = warden_names_request(what, id, words);
	CLEANUP(fd_closep) int fd = -1;
	struct warden_names_question q = { .number = number, .what = what };
	ssize_t n;

	if (!len || !*path)
		return -EINVAL;
	if (names_fd < 0)
		return -ESRCH;
	if (names_is_too_often())
		return -EAGAIN;
	fd = names_connect_to_runtime(path);
	if (fd < 0)
		return fd;
	n = send(fd, words, len, MSG_NOSIGNAL);
	if (n != (ssize_t)len)
		return n < 0 ? -errno : -EIO;
	n = warden_send(names_fd, &q, sizeof(q), &fd, 1);
	return n < 0 ? (int)n : 0;
}

int warden_names_open(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	fd_close(names_fd);
	names_fd = pair[0];
	/* the warden must not wait for a kindling-names that does not read its questions */
	(void)fcntl(names_fd, F_SETFL, O_NONBLOCK);
	return pair[1];
}
