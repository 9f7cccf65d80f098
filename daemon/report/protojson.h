/* Writes a protobuf message as JSON, by proto3's mapping with OTLP's change that bytes are
 * hexadecimal. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include "daemon/report/text_out.h"

/* The message may have messages, strings, booleans, numbers and bytes, at most 64 in a field, but
 * neither enums nor maps. */
void protojson_write(struct text_out *t, const ProtobufCMessage *m);
