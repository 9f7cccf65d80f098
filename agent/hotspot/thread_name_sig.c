/* See thread_name.h and thread_name_priv.h: names of threads, read from memory. */
#include "agent/base/guard.h"
#include "agent/base/producer.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/object_header.h"
#include "agent/hotspot/thread_name_priv.h"

struct thread_name_layout thread_name_layout_sig;
uint64_t thread_name_sent_sig[THREAD_NAME_SENT_MAX];
uint32_t thread_name_generation_sig = 1;

/* ---- names that were reported ---- */

static uint64_t mark_of(uint32_t number, uint64_t id)
{
	return (id * 0x9e3779b97f4a7c15ull ^ number) | 1;
}

bool thread_name_was_sent_sig(uint32_t number, uint64_t id)
{
	return __atomic_load_n(&thread_name_sent_sig[number % THREAD_NAME_SENT_MAX],
			       __ATOMIC_RELAXED) == mark_of(number, id);
}

void thread_name_set_sent_sig(uint32_t number, uint64_t id)
{
	__atomic_store_n(&thread_name_sent_sig[number % THREAD_NAME_SENT_MAX], mark_of(number, id),
			 __ATOMIC_RELAXED);
}

void thread_name_unset_sent_sig(uint32_t number)
{
	__atomic_store_n(&thread_name_sent_sig[number % THREAD_NAME_SENT_MAX], 0, __ATOMIC_RELAXED);
}

struct ring_sample thread_name_head_sig(uint32_t number, uint64_t id,
					const union thread_name_text *text)
{
	uint32_t bytes = 1, each = sizeof(struct walk_frame);

	while (bytes < sizeof(text->name) && text->name[bytes - 1])
		bytes++;
	return (struct ring_sample){
		.tid = number,
		.virtual_id = id,
		.event = RING_NAME,
		.n_frames = (bytes + each - 1) / each,
	};
}

/* ---- reading ---- */

/* Has no stop-the-world collection run since @before was read? A collection moves the objects that
 * are read here. */
static bool is_unmoved(uint64_t before)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return before && oop_epoch_sig() == before;
}

uint64_t thread_name_object_sig(uint64_t java_thread, bool is_virtual)
{
	const struct thread_name_layout *l = &thread_name_layout_sig;
	uint64_t slot = java_thread + (uint32_t)(is_virtual ? vm_sig.thread_vthread : l->object);

	if (l->slot_is_object)
		return load64_sig(slot);
	/* an OopHandle is read like a global JNI reference */
	return oop_of_handle_sig(load64_sig(slot) | 2);
}

/* Is @object the Thread of that thread? The Thread of a platform thread refers to its JavaThread;
 * that of a virtual one has the id from which @number is derived. */
static bool is_it(uint64_t object, uint64_t java_thread, uint32_t number, uint64_t id)
{
	if (number & WIRE_VIRTUAL_TID)
		return number == walk_virtual_number(id);
	return load64_sig(object + (uint32_t)thread_name_layout_sig.eetop) == java_thread;
}

bool thread_name_read_sig(uint64_t java_thread, uint64_t object, uint32_t number, uint64_t *ret_id,
			  union thread_name_text *ret)
{
	uint64_t before = oop_epoch_sig(), id, name;

	*ret_id = 0;
	if (!__atomic_load_n(&thread_name_layout_sig.readable, __ATOMIC_ACQUIRE) || !number)
		return false;
	if (!object)
		object = thread_name_object_sig(java_thread, number & WIRE_VIRTUAL_TID);
	id = object ? load64_sig(object + (uint32_t)continuation_sig.thread_id) : 0;
	if (!id || !is_it(object, java_thread, number, id))
		return false;
	if (thread_name_was_sent_sig(number, id)) {
		*ret_id = id;
		return false;
	}
	name = oop_load_sig(object + (uint32_t)continuation_sig.thread_name);
	if (!name || object_klass_sig(name) != thread_name_layout_sig.string)
		return false;
	java_string_sig(name, ret->name, sizeof(ret->name));
	/* if the checks fail, the agent's next pass over all threads reports the name */
	if (!is_it(object, java_thread, number, id) || !is_unmoved(before) ||
	    oop_load_sig(object + (uint32_t)continuation_sig.thread_name) != name)
		return false;
	*ret_id = id;
	return true;
}

bool thread_name_here_sig(uint32_t tid)
{
	uint64_t java_thread = java_thread_address_sig(), id;
	union thread_name_text text;
	struct ring_sample head;

	if (!java_thread)
		return false;
	if (!thread_name_read_sig(java_thread, 0, tid, &id, &text))
		return id != 0;
	head = thread_name_head_sig(tid, id, &text);
	thread_name_set_sent_sig(tid, id);
	if (text.name[0] && !ring_push_sig(&agent.ring, &head, text.frames))
		thread_name_unset_sent_sig(tid);
	return true;
}
