/*
 * Finds the gRPC answer in the bytes of an HTTP/2 connection on which a single request was sent, on
 * stream 1. Header blocks are skipped, because only the message matters. Pure; fuzzed by
 * tests/fuzz/fuzz_names.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * @data, @len: all bytes that were received on the connection
 * @body:       at least @len bytes, for the content of DATA frames; afterwards the message begins
 *              after the first FRAMES_HEAD bytes
 * @ret_len:    length of the message
 *
 * Returns 1: the message is complete; 0: more bytes are needed; -EPROTO: this is not HTTP/2 or not
 * gRPC; -EREMOTEIO: the answer ends without a message; -ECONNRESET: the server has ended the stream
 * or the connection.
 */
#define FRAMES_HEAD 5
int frames_read(const uint8_t *data, size_t len, uint8_t *body, size_t *ret_len);
