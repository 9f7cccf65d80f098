/*
 * Sends one command and reads its answer; each command has its own connection. Protocol 1 (all JVMs
 * from 8 on): the protocol's number, a command of up to 16 bytes and three arguments of up to 1024
 * bytes, each NUL-terminated; the JVM closes the connection if one of them is longer. Protocol 2
 * (JDK 24 and later) adds the total length of command and arguments after its number; only JVMs
 * that have it know the command `getversion`.
 */
#include "injector/inject.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define WORDS	     4
#define ARGUMENT_1   1024 /* bytes of the longest argument in protocol 1 */
#define HEADER_BYTES 32

static int wait_for(const struct inject *in, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, inject_remaining_ms(in)) > 0 ? 0 : -ETIMEDOUT;
}

static int send_all(const struct inject *in, int socket, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = send(socket, buf, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0 && wait_for(in, socket, POLLOUT) < 0)
			return -ETIMEDOUT;
		if (n > 0) {
			buf += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int receive_all(const struct inject *in, int socket, char *reply, size_t size)
{
	size_t have = 0;

	while (have < size - 1) {
		ssize_t n = recv(socket, reply + have, size - 1 - have, 0);

		if (n == 0)
			break;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		/* checked after each piece, so that a JVM that sends one byte at a time cannot
		 * exceed the deadline */
		if (inject_remaining_ms(in) == 0 || (n < 0 && wait_for(in, socket, POLLIN) < 0))
			return -ETIMEDOUT;
		if (n > 0)
			have += (size_t)n;
	}
	reply[have] = '\0';
	return 0;
}

/* ---- requests ------------------------------------------------------------------------------- */

int attach_protocol_for(const char *const words[4])
{
	for (int i = 0; i < WORDS; i++)
		if (words[i] && strlen(words[i]) > ARGUMENT_1)
			return 2;
	return 1;
}

ssize_t attach_request(int protocol, const char *const words[4], char *buf, size_t size)
{
	size_t body = 0, len;

	for (int i = 0; i < WORDS; i++)
		body += strlen(words[i] ? words[i] : "") + 1;
	if (body > size || size - body < HEADER_BYTES)
		return -E2BIG;
	len = (size_t)snprintf(buf, HEADER_BYTES, "%d", protocol) + 1;
	if (protocol > 1)
		len += (size_t)snprintf(buf + len, HEADER_BYTES - len, "%zu", body) + 1;
	for (int i = 0; i < WORDS; i++) {
		const char *word = words[i] ? words[i] : "";
		size_t n = strlen(word) + 1;

		memcpy(buf + len, word, n);
		len += n;
	}
	return (ssize_t)len;
}

/* The answer to getversion is "0
 * 2" from a JVM with protocol 2, "-1
 * " or "101
 * " from others. */
int attach_protocol_of(const char *reply)
{
	return strncmp(reply, "0\n", 2) == 0 ? (int)strtol(reply + 2, NULL, 10) : 1;
}

/* ---- asking --------------------------------------------------------------------------------- */

static int attach_command_ask(struct inject *in, int protocol, const char *const words[4],
			      char *reply, size_t size)
{
	static char request[ATTACH_REQUEST_MAX];
	CLEANUP(fd_closep) int socket = -1;
	ssize_t len = attach_request(protocol, words, request, sizeof(request));
	int r;

	if (len < 0)
		return fault_set(in->fault, E2BIG, FAULT_ATTACH, "the attach command is too long");
	r = attach_connect(in, &socket);
	if (r < 0)
		return r;
	r = send_all(in, socket, request, (size_t)len);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_ATTACH, "cannot send the attach command: ");
	r = receive_all(in, socket, reply, size);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_ATTACH, "cannot read the JVM's answer: ");
	return 0;
}

int attach_command(struct inject *in, const char *const words[4], char *reply, size_t size)
{
	static const char *const version[WORDS] = { "getversion", NULL, NULL, NULL };
	int protocol = attach_protocol_for(words), r;

	if (protocol > 1) {
		r = attach_command_ask(in, 1, version, reply, size);
		if (r < 0)
			return r;
		if (attach_protocol_of(reply) < protocol)
			return fault_set(
				in->fault, E2BIG, FAULT_ATTACH,
				"a word of the command is longer than the %d bytes that this JVM accepts (JDK 24 and later accept more)",
				ARGUMENT_1);
	}
	return attach_command_ask(in, protocol, words, reply, size);
}
