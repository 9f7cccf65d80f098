/* See idle.h; the rules are in proto/idle.c. */
#include "daemon/profile/idle.h"

#include <string.h>
#include "daemon/ground/mem.h"

#define MARK_NO	 1
#define MARK_YES 2

/* Threads of the JVM itself that wait for requests. */
static const char *const services[] = {
	"Signal Dispatcher", "Attach Listener",		 "Notification Thread",
	"Service Thread",    "Monitor Deflation Thread",
};

static enum idle_sight profile_idle_look(const struct stream *stream, uint32_t node)
{
	enum idle_sight sight = IDLE_UNDECIDED;
	struct stream_frame f;

	for (int i = 0; i < IDLE_FRAMES_MAX && sight == IDLE_UNDECIDED; i++) {
		if (!stream_node(stream, node, &f, &node))
			return IDLE_NO;
		if (wire_kind_is_method(f.kind))
			sight = idle_frame(f.class_name, f.method);
	}
	return sight;
}

bool idle_stack(const struct stream *stream, uint32_t node)
{
	uint8_t mark = stream_node_mark(stream, node);

	if (mark == 0) {
		mark = profile_idle_look(stream, node) == IDLE_YES ? MARK_YES : MARK_NO;
		stream_mark_node(stream, node, mark);
	}
	return mark == MARK_YES;
}

bool idle_wait(const struct stream *stream, const struct stream_lock *wait)
{
	return wait->wait != WIRE_WAIT_ENTER && idle_stack(stream, wait->node);
}

static bool has_method(const struct stream *stream, uint32_t node)
{
	struct stream_frame f;

	for (int i = 0; i < IDLE_FRAMES_MAX && stream_node(stream, node, &f, &node); i++)
		if (wire_kind_is_method(f.kind))
			return true;
	return false;
}

bool idle_sample(const struct stream *stream, const struct stream_sample *sample)
{
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (strcmp(sample->thread, services[i]) == 0)
			return !has_method(stream, sample->node);
	return idle_stack(stream, sample->node);
}
