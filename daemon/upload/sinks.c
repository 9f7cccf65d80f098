/* The list of all types of sinks. */
#include "daemon/upload/sink_types.h"

const struct sink_type *const sink_types[SINK_TYPE_COUNT] = {
	[SINK_CLICKHOUSE] = &sink_clickhouse, [SINK_EXEC] = &sink_exec,
	[SINK_FILES] = &sink_files,	      [SINK_OTLP] = &sink_otlp,
	[SINK_PYROSCOPE] = &sink_pyroscope,   [SINK_S3] = &sink_s3,
	[SINK_SKYWALKING] = &sink_skywalking,
};
