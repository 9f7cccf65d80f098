/* See protojson.h. The fields of a message are found by the descriptors that protoc-c writes. */
#include "daemon/report/protojson.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "daemon/report/json_out.h"

#define PROTOJSON_NAME_MAX  64
#define PROTOJSON_BYTES_MAX 64 /* ids of profiles, traces and spans */

/* The field's key in JSON: "string_table" becomes "stringTable". */
static const char *protojson_key(const char *name, char ret[PROTOJSON_NAME_MAX])
{
	size_t n = 0;

	for (; *name && n < PROTOJSON_NAME_MAX - 1; name++) {
		if (*name == '_' && name[1] >= 'a')
			ret[n++] = (char)(*++name - 'a' + 'A');
		else
			ret[n++] = *name;
	}
	ret[n] = '\0';
	return ret;
}

static void protojson_hex(struct text_out *t, const char *key, const ProtobufCBinaryData *bytes)
{
	char hex[2 * PROTOJSON_BYTES_MAX + 1] = "";

	if (bytes->len > PROTOJSON_BYTES_MAX)
		t->failed = true;
	for (size_t i = 0; i < bytes->len && !t->failed; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes->data[i]);
	json_add_string(t, key, hex);
}

static void protojson_digits(struct text_out *t, const char *key, bool negative, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%s%" PRIu64, negative ? "-" : "", n);
	json_add_string(t, key, text);
}

static void protojson_message(struct text_out *t, const char *key, const ProtobufCMessage *message);

/* Writes a value. Numbers of 64 bits become strings, because those of JavaScript have 53 bits. */
static void protojson_value(struct text_out *t, const char *key, const ProtobufCFieldDescriptor *f,
			    const void *at)
{
	int64_t n;

	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		protojson_message(t, key, *(ProtobufCMessage *const *)at);
		break;
	case PROTOBUF_C_TYPE_STRING:
		json_add_string(t, key, *(const char *const *)at);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		protojson_hex(t, key, at);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		json_add_bool(t, key, *(const protobuf_c_boolean *)at);
		break;
	case PROTOBUF_C_TYPE_INT32:
		json_add_i64(t, key, *(const int32_t *)at);
		break;
	case PROTOBUF_C_TYPE_INT64:
		n = *(const int64_t *)at;
		protojson_digits(t, key, n < 0, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		protojson_digits(t, key, false, *(const uint64_t *)at);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		json_add_rounded(t, key, *(const double *)at, 17);
		break;
	default:
		t->failed = true;
	}
}

static size_t protojson_size(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_INT32:
		return sizeof(int32_t);
	case PROTOBUF_C_TYPE_MESSAGE:
	case PROTOBUF_C_TYPE_STRING:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return sizeof(uint64_t);
	}
}

/* Does the field differ from the default, which readers assume for a missing one? */
static bool protojson_is_set(const ProtobufCFieldDescriptor *f, const char *m)
{
	static const char zeros[sizeof(ProtobufCBinaryData)];
	const void *at = m + f->offset;

	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)(const void *)(m + f->quantifier_offset) == f->id;
	if (f->type == PROTOBUF_C_TYPE_STRING)
		return *(const char *const *)at && **(const char *const *)at;
	if (f->type == PROTOBUF_C_TYPE_BYTES)
		return ((const ProtobufCBinaryData *)at)->len > 0;
	return memcmp(at, zeros, protojson_size(f)) != 0;
}

static void protojson_list(struct text_out *t, const char *key, const ProtobufCFieldDescriptor *f,
			   const char *m)
{
	size_t n = *(const size_t *)(const void *)(m + f->quantifier_offset);
	const char *items = *(const char *const *)(const void *)(m + f->offset);

	if (n == 0)
		return;
	json_begin_list(t, key);
	for (size_t i = 0; i < n; i++)
		protojson_value(t, NULL, f, items + i * protojson_size(f));
	json_end_list(t);
}

static void protojson_message(struct text_out *t, const char *key, const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *d = message->descriptor;
	const char *m = (const char *)message;
	char name[PROTOJSON_NAME_MAX];

	json_begin_object(t, key);
	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];

		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			protojson_list(t, protojson_key(f->name, name), f, m);
		else if (protojson_is_set(f, m))
			protojson_value(t, protojson_key(f->name, name), f, m + f->offset);
	}
	json_end_object(t);
}

void protojson_write(struct text_out *t, const ProtobufCMessage *message)
{
	protojson_message(t, NULL, message);
}
