/* For grpc.h: parses what a gRPC server sends at the end of a call, all of it untrusted text. */
#include "daemon/upload/grpc.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/utf8.h"
#include "grpc_status.pb-c.h"

#define WORDS_DETAILS_MAX 4096
#define WORDS_PAUSE_MAX_S 86400

enum grpc_status grpc_status_of_http(long http_status)
{
	switch (http_status) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

static int words_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_decode_text(const char *s, char *buf, size_t size)
{
	char raw[GRPC_TEXT_MAX];
	size_t n = 0;

	while (*s && n < sizeof(raw)) {
		int high = *s == '%' ? words_hex(s[1]) : -1;
		int low = high >= 0 ? words_hex(s[2]) : -1;

		raw[n++] = low >= 0 ? (char)(high << 4 | low) : *s;
		s += low >= 0 ? 3 : 1;
	}
	utf8_copy(buf, size, raw, n);
}

static int words_base64(char c)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(letters, c) : NULL;

	return at ? (int)(at - letters) : -1;
}

/* Decodes base64 up to its padding, which gRPC allows to be missing. Returns the number of bytes
 * in @to. */
static size_t words_unbase64(const char *s, uint8_t *to, size_t size)
{
	uint32_t bits = 0;
	size_t n = 0;

	for (unsigned have = 0; words_base64(*s) >= 0 && n < size; s++) {
		bits = bits << 6 | (uint32_t)words_base64(*s);
		have += 6;
		if (have >= 8) {
			have -= 8;
			to[n++] = (uint8_t)(bits >> have);
		}
	}
	return n;
}

static uint64_t words_pause(const Kindling__Grpc__Any *a)
{
	Kindling__Grpc__RetryInfo *info;
	uint64_t ns = 0;

	if (strcmp(a->type_url, "type.googleapis.com/google.rpc.RetryInfo") != 0)
		return 0;
	info = kindling__grpc__retry_info__unpack(NULL, a->value.len, a->value.data);
	if (info && info->retry_delay && info->retry_delay->seconds >= 0 &&
	    info->retry_delay->nanos >= 0) {
		int64_t s = info->retry_delay->seconds;

		ns = (uint64_t)(s < WORDS_PAUSE_MAX_S ? s : WORDS_PAUSE_MAX_S) * NS_PER_S +
		     (uint64_t)info->retry_delay->nanos % NS_PER_S;
	}
	kindling__grpc__retry_info__free_unpacked(info, NULL);
	return ns;
}

uint64_t grpc_retry_after(const char *details)
{
	uint8_t bytes[WORDS_DETAILS_MAX];
	size_t len = words_unbase64(details, bytes, sizeof(bytes));
	Kindling__Grpc__Status *status = kindling__grpc__status__unpack(NULL, len, bytes);
	uint64_t ns = 0;

	for (size_t i = 0; status && i < status->n_details && ns == 0; i++)
		ns = words_pause(status->details[i]);
	kindling__grpc__status__free_unpacked(status, NULL);
	return ns;
}
