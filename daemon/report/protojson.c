/* See protojson.h. The fields of a message are found by the descriptors that protoc-c writes. */
#include "daemon/report/protojson.h"

#include <string.h>

/* Writes a field's name for JSON: "string_table" becomes "stringTable". */
static void protojson_key(struct text_out *t, const char *name)
{
	text_put(t, "\"");
	for (; *name; name++) {
		char upper = (char)(name[1] - 'a' + 'A');

		if (*name == '_' && name[1] >= 'a') {
			text_bytes(t, &upper, 1);
			name++;
		} else {
			text_bytes(t, name, 1);
		}
	}
	text_put(t, "\":");
}

static void protojson_hex(struct text_out *t, const ProtobufCBinaryData *bytes)
{
	text_put(t, "\"");
	for (size_t i = 0; i < bytes->len; i++)
		text_printf(t, "%02x", bytes->data[i]);
	text_put(t, "\"");
}

/* Writes a value. Numbers of 64 bits become strings, because those of JavaScript have 53 bits. */
static void protojson_value(struct text_out *t, const ProtobufCFieldDescriptor *f, const void *at)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		protojson_write(t, *(ProtobufCMessage *const *)at);
		break;
	case PROTOBUF_C_TYPE_STRING:
		text_json(t, *(const char *const *)at);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		protojson_hex(t, at);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		text_put(t, *(const protobuf_c_boolean *)at ? "true" : "false");
		break;
	case PROTOBUF_C_TYPE_INT32:
		text_printf(t, "%d", *(const int32_t *)at);
		break;
	case PROTOBUF_C_TYPE_INT64:
		text_printf(t, "\"%lld\"", (long long)*(const int64_t *)at);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		text_printf(t, "\"%llu\"", (unsigned long long)*(const uint64_t *)at);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		text_printf(t, "%.17g", *(const double *)at);
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

static void protojson_list(struct text_out *t, const ProtobufCFieldDescriptor *f, const char *m)
{
	size_t n = *(const size_t *)(const void *)(m + f->quantifier_offset);
	const char *items = *(const char *const *)(const void *)(m + f->offset);

	text_put(t, "[");
	for (size_t i = 0; i < n; i++) {
		if (i)
			text_put(t, ",");
		protojson_value(t, f, items + i * protojson_size(f));
	}
	text_put(t, "]");
}

void protojson_write(struct text_out *t, const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *d = message->descriptor;
	const char *m = (const char *)message, *comma = "";

	text_put(t, "{");
	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];
		bool list = f->label == PROTOBUF_C_LABEL_REPEATED;

		if (list ? *(const size_t *)(const void *)(m + f->quantifier_offset) == 0
			 : !protojson_is_set(f, m))
			continue;
		text_put(t, comma);
		comma = ",";
		protojson_key(t, f->name);
		if (list)
			protojson_list(t, f, m);
		else
			protojson_value(t, f, m + f->offset);
	}
	text_put(t, "}");
}
