/* See frames.h. HTTP/2 frames: RFC 9113, 4.1 and 6. A gRPC message has a flag and its length in
 * front. */
#include "daemon/names/frames.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define FRAME_HEAD_SIZE 9
#define FRAME_SIZE_MAX	16384 /* the default, RFC 9113, 4.2; the request does not raise it */
#define END_STREAM	1
#define PADDED		8

enum frames_type {
	TYPE_DATA = 0,
	TYPE_HEADERS = 1,
	TYPE_RESET = 3,
	TYPE_SETTINGS = 4,
	TYPE_GOAWAY = 7
};

struct frame {
	size_t len;
	unsigned type, flags;
	uint32_t stream;
	const uint8_t *payload;
};

static uint32_t frames_number(const uint8_t *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return ntohl(n);
}

/* Reads the frame at @data. 1 = it is complete, 0 = more bytes are needed, or -EPROTO. */
static int frames_next(const uint8_t *data, size_t len, struct frame *ret)
{
	if (len < FRAME_HEAD_SIZE)
		return 0;
	ret->len = (size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2];
	ret->type = data[3];
	ret->flags = data[4];
	ret->stream = frames_number(data + 5) & 0x7fffffffu;
	ret->payload = data + FRAME_HEAD_SIZE;
	if (ret->len > FRAME_SIZE_MAX)
		return -EPROTO;
	return len - FRAME_HEAD_SIZE >= ret->len;
}

/* Appends the content of a DATA frame, without its padding, to @body. 0 or -EPROTO. */
static int frames_content(const struct frame *f, uint8_t *body, size_t *body_len)
{
	size_t skip = f->flags & PADDED ? 1 : 0, padding;

	if (f->len < skip)
		return -EPROTO;
	padding = skip ? f->payload[0] : 0;
	if (f->len - skip < padding)
		return -EPROTO;
	memcpy(body + *body_len, f->payload + skip, f->len - skip - padding);
	*body_len += f->len - skip - padding;
	return 0;
}

/* Is the gRPC message complete? 1 = yes, 0 = no, or -EPROTO. */
static int frames_message(const uint8_t *body, size_t body_len, size_t *ret_len)
{
	if (body_len < FRAMES_HEAD)
		return 0;
	if (body[0]) /* compressed, although the request did not allow that */
		return -EPROTO;
	*ret_len = frames_number(body + 1);
	if (body_len - FRAMES_HEAD > *ret_len)
		return -EPROTO;
	return body_len - FRAMES_HEAD == *ret_len;
}

/* Handles a complete frame. Returns as frames_read() does; 0 = continue with the next frame. */
static int frames_take(const struct frame *f, uint8_t *body, size_t *body_len, size_t *ret_len)
{
	int r = 0;

	if (f->type == TYPE_GOAWAY && f->len >= 8 && frames_number(f->payload + 4) != 0)
		return -ECONNRESET;
	if (f->stream != 1)
		return 0;
	if (f->type == TYPE_RESET)
		return -ECONNRESET;
	if (f->type == TYPE_DATA)
		r = frames_content(f, body, body_len);
	if (r == 0 && f->type == TYPE_DATA)
		r = frames_message(body, *body_len, ret_len);
	if (r == 0 && (f->type == TYPE_DATA || f->type == TYPE_HEADERS) && f->flags & END_STREAM)
		return *body_len ? -EPROTO : -EREMOTEIO;
	return r;
}

int frames_read(const uint8_t *data, size_t len, uint8_t *body, size_t *ret_len)
{
	size_t body_len = 0, at = 0;
	struct frame f;
	int r;

	while ((r = frames_next(data + at, len - at, &f)) == 1) {
		/* an HTTP/2 server sends SETTINGS first; anything else is not HTTP/2 */
		if (at == 0 && (f.type != TYPE_SETTINGS || f.stream != 0))
			return -EPROTO;
		r = frames_take(&f, body, &body_len, ret_len);
		if (r != 0)
			return r;
		at += FRAME_HEAD_SIZE + f.len;
	}
	return r;
}
