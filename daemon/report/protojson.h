/* A protobuf message as JSON, by the mapping of proto3 with OTLP's changes: bytes are hex. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include "daemon/report/text_out.h"

/* Messages, strings, bytes, booleans and numbers; no enums, no maps. */
void protojson_write(struct text_out *t, const ProtobufCMessage *m);
