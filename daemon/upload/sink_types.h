/* One file for each type; sinks.c has the table. */
#pragma once

#include "daemon/upload/sink.h"

extern const struct sink_type sink_clickhouse, sink_exec, sink_files, sink_otlp, sink_pyroscope,
	sink_s3, sink_skywalking;
