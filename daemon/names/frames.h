/*
 * One answer of gRPC out of the bytes of an HTTP/2 connection on which a single question was put,
 * on stream 1. Header blocks are skipped: an answer is a message, or there is none. Pure; fuzzed by
 * tests/fuzz/fuzz_names.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * @data, @len: all bytes that came since the connection was made
 * @body:       at least @len bytes, for the content of DATA frames; afterwards, the message is what
 *              follows the first FRAMES_HEAD bytes
 * @ret_len:    length of the message
 *
 * Returns 1: the message is whole; 0: more bytes have to come; -EPROTO: that is not HTTP/2 or not
 * gRPC; -EREMOTEIO: the answer ends without a message; -ECONNRESET: the server ended the stream or
 * the connection.
 */
#define FRAMES_HEAD 5
int frames_read(const uint8_t *data, size_t len, uint8_t *body, size_t *ret_len);
