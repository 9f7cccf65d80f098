/*
 * Reads the id and the name of the mounted virtual thread from its Thread object, inside the
 * handler, because a moment later another thread may be mounted. If a stop-the-world collection
 * interferes, no name is reported until the next sample.
 */
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"

#define CODER_LATIN1 0

/* Writes one character of the Basic Multilingual Plane; 0 = no room. */
static uint32_t put_utf8(char *to, uint32_t room, uint32_t c)
{
	if (c < 0x20 || (c >= 0xd800 && c < 0xe000))
		c = '?';
	if (c < 0x80 && room >= 1) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800 && room >= 2) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c >= 0x800 && room >= 3) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	return 0;
}

/* JDK 8 has a char array, whose length is in characters. */
void java_string_sig(uint64_t string, char *ret, uint32_t size)
{
	const struct continuation_layout *c = &continuation_sig;
	uint64_t bytes = oop_load_sig(string + (uint32_t)c->string_value);
	uint32_t length = bytes ? load32_sig(bytes + (uint32_t)c->array_length) : 0, n = 0;
	bool wide = c->string_coder < 0 ||
		    load8_sig(string + (uint32_t)c->string_coder) != CODER_LATIN1;
	uint64_t at = bytes + (uint32_t)c->array_data;

	if (c->string_coder < 0)
		length = length < size ? 2 * length : 2 * size;
	for (uint32_t i = 0; i < length && n < size - 1; i += 1u + wide) {
		uint32_t put = put_utf8(ret + n, size - 1 - n,
					wide ? load16_sig(at + i) : load8_sig(at + i));

		if (!put)
			break;
		n += put;
	}
	ret[n] = '\0';
}

/* The Thread object that runs on a JavaThread: that of the virtual thread if one is mounted. */
static uint64_t thread_object(uint64_t java_thread)
{
	if (vm_sig.thread_vthread < 0 || continuation_sig.thread_id < 0)
		return 0;
	return oop_load_wide_sig(load64_sig(java_thread + (uint32_t)vm_sig.thread_vthread));
}

/* If no virtual thread is mounted, _threadObj and _vthread refer to the same Thread. If the
 * collector makes one of them unreadable, the presence of a ContinuationEntry decides. */
bool virtual_is_mounted_sig(uint64_t java_thread)
{
	int32_t entry = continuation_sig.entry_in_thread;
	uint64_t here, own;

	if (vm_sig.thread_vthread < 0 || vm_sig.thread_object < 0)
		return false;
	here = oop_load_wide_sig(load64_sig(java_thread + (uint32_t)vm_sig.thread_vthread));
	own = oop_load_wide_sig(load64_sig(java_thread + (uint32_t)vm_sig.thread_object));
	if (here && own)
		return here != own;
	return entry >= 0 && load64_sig(java_thread + (uint32_t)entry);
}

uint64_t virtual_platform_id_sig(uint64_t java_thread)
{
	uint64_t own;

	if (vm_sig.thread_object < 0 || continuation_sig.thread_id < 0)
		return 0;
	own = oop_load_wide_sig(load64_sig(java_thread + (uint32_t)vm_sig.thread_object));
	return own ? load64_sig(own + (uint32_t)continuation_sig.thread_id) : 0;
}

uint64_t virtual_id_sig(uint64_t java_thread)
{
	uint64_t thread;

	if (vm_sig.thread_monitor_owner >= 0) /* the same number, in a field that the collector does
					       * not touch */
		return load64_sig(java_thread + (uint32_t)vm_sig.thread_monitor_owner);
	thread = thread_object(java_thread);
	return thread ? load64_sig(thread + (uint32_t)continuation_sig.thread_id) : 0;
}

void virtual_identity_sig(uint64_t java_thread, struct walk *w)
{
	const struct continuation_layout *c = &continuation_sig;
	uint64_t thread, name, epoch = oop_epoch_sig();

	if (!java_thread || vm_sig.thread_vthread < 0 || c->thread_id < 0)
		return;
	thread = thread_object(java_thread);
	w->virtual_id = virtual_id_sig(java_thread);
	if (!thread || c->thread_name < 0 || c->string_value < 0)
		return;
	name = oop_load_sig(thread + (uint32_t)c->thread_name);
	if (name)
		java_string_sig(name, w->virtual_name, sizeof(w->virtual_name));
	if (!epoch || oop_epoch_sig() != epoch)
		w->virtual_name[0] = '\0';
}
