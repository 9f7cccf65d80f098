/* Writes a protobuf message as JSON, by proto3's mapping with OTLP's change that bytes are
 * hexadecimal. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include "daemon/report/text_out.h"

/* The message may have messages, strings, bytes, booleans and numbers, but neither enums nor
 * maps. */
void protojson_write(struct text_out *t, const ProtobufCMessage *m);
