/*
 * Reads JSON once from front to back and builds no tree: a profile has millions of numbers, of 64
 * bits. If the expected value is not there, reading fails with the position; from then on all
 * values are empty and loops end. Pure; trusts nothing.
 *
 *     json_object(j);
 *     while (json_key(j))
 *             if (json_is(j, "rows")) ...
 *             else json_skip(j);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 64
#define JSON_TEXT_MAX  65536 /* of a string; longer ones are an error */

struct json_in {
	const char *begin, *at, *end;
	unsigned depth;
	bool fresh; /* the innermost object or array has had no element yet */
	bool failed;
	char why[160]; /* "no comma at byte 4711" */
	char key[64]; /* the last key; longer ones are cut */
	char *text; /* the last string value; owned */
};

/* @bytes are borrowed until json_deinit(). 0 or -ENOMEM. */
int json_init(struct json_in *j, const char *bytes, size_t len);
void json_deinit(struct json_in *j);
/* Reading has failed: keeps @what with the position. Only the first failure counts. */
void json_fail(struct json_in *j, const char *what);

void json_object(struct json_in *j); /* a "{" */
bool json_key(struct json_in *j); /* the next key is in @key; false: the object has ended */
bool json_is(const struct json_in *j, const char *key);
void json_array(struct json_in *j); /* a "[" */
bool json_item(struct json_in *j); /* another element follows; false: the array has ended */
const char *json_text(struct json_in *j); /* valid until the next string */
uint64_t json_u64(struct json_in *j);
int64_t json_i64(struct json_in *j);
bool json_bool(struct json_in *j);
bool json_null(struct json_in *j); /* is the value null? Otherwise nothing is read */
void json_skip(struct json_in *j); /* any value */
void json_end(struct json_in *j); /* fails if anything follows the value */
