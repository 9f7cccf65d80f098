/*
 * See owner.h. The owner field of an ObjectMonitor holds:
 *
 * JDK 8 to 21: the address of a JavaThread or, if the lock was not contended before, of a BasicLock
 * on the owner's stack. JDK 21 also: 1, "anonymous", which means that the object is in the lock
 * stack of some thread. JDK 25 and later: the Thread.threadId() of the owner, virtual or not, or 1
 * as above.
 *
 * The owner is searched for in the JVM's list of threads. The agent does not lock the list, so it
 * may be freed while it is read; then no entry matches.
 */
#include "agent/hotspot/owner.h"

#include <stddef.h>
#include "agent/base/arch.h"
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"
#include "agent/hotspot/object_header.h"
#include "agent/hotspot/thread_name.h"
#include "agent/hotspot/virtual_entry.h"
#include "agent/hotspot/virtual_sets.h"
#include "proto/wire.h"

#define ANONYMOUS	  1
#define MARKERS_MAX	  4 /* owner words below MARKERS_MAX - 1 name no thread */
#define MOUNT_TRIES	  200 /* tries of some 40 ns */
#define LOCK_STACK_MAX	  8 /* objects */
#define VIRTUAL_MAX	  4096 /* threads that are examined for one owner */
#define NEAR		  256u /* cache of recently found threads; power of two */
#define STACK_GRAIN	  20 /* bits: addresses in the same MiB share a cache slot */
#define HANDLE_WEAK	  1 /* tag of a weak reference */
#define WEAK_OBJECT_SINCE 16

static struct {
	bool usable;
	int32_t pending, waiting, lock_stack; /* in a JavaThread */
	int32_t owner, object; /* in an ObjectMonitor */
	bool object_is_handle; /* from JDK 16 on a weak handle refers to the object */
	int32_t lock_top, lock_base; /* in a LockStack */
	int32_t list_length, list_threads, next; /* fields of the thread list; next: JDK 8 */
	const uint64_t *list; /* the JVM's variable that points to the list; JDK 8: to the first
			       * thread */
} vm;

/* ---- the list of threads ---- */

struct walk_list {
	uint64_t at; /* address of the next entry; JDK 8: the next thread */
	uint32_t left;
};

static void list_begin(struct walk_list *l)
{
	uint64_t list = __atomic_load_n(vm.list, __ATOMIC_ACQUIRE);

	l->at = list;
	l->left = VIRTUAL_MAX;
	if (vm.next >= 0)
		return;
	l->at = load64_sig(list + (uint32_t)vm.list_threads);
	l->left = load32_sig(list + (uint32_t)vm.list_length);
	if (l->left > VIRTUAL_MAX)
		l->left = VIRTUAL_MAX;
}

/* Returns 0 at the end of the list. */
static uint64_t list_next(struct walk_list *l)
{
	uint64_t thread;

	if (!l->left--)
		return 0;
	if (vm.next < 0) {
		thread = load64_sig(l->at);
		l->at += 8;
		return thread;
	}
	thread = l->at;
	l->at = thread ? load64_sig(thread + (uint32_t)vm.next) : 0;
	return thread;
}

/* ---- conditions of a search ---- */

static bool has_id(uint64_t thread, uint64_t id)
{
	return load64_sig(thread + (uint32_t)vm_sig.thread_monitor_owner) == id;
}

static bool has_stack(uint64_t thread, uint64_t address)
{
	uint64_t base = load64_sig(thread + (uint32_t)vm_sig.thread_stack_base);
	uint64_t size = load64_sig(thread + (uint32_t)vm_sig.thread_stack_size);

	return address < base && address >= base - size;
}

static bool has_locked(uint64_t thread, uint64_t object)
{
	uint64_t stack = thread + (uint32_t)vm.lock_stack;
	uint64_t base = (uint32_t)vm.lock_stack + (uint32_t)vm.lock_base;
	uint64_t top = load32_sig(stack + (uint32_t)vm.lock_top); /* offset in the thread */

	for (uint64_t at = base; at < top && at < base + 8 * LOCK_STACK_MAX; at += 8)
		if (load64_sig(thread + at) == object)
			return true;
	return false;
}

static uint64_t owner_search(bool (*has)(uint64_t thread, uint64_t word), uint64_t word)
{
	struct walk_list list;
	uint64_t thread;

	list_begin(&list);
	while ((thread = list_next(&list)))
		if (has(thread, word))
			return thread;
	return 0;
}

/* A cache, because a search among thousands of threads takes long, and mostly the same few threads
 * are sought. */
static uint64_t near_threads[NEAR];

static uint64_t owner_find(bool (*has)(uint64_t thread, uint64_t word), uint64_t word,
			   uint64_t hash)
{
	uint64_t *slot = &near_threads[(hash ^ hash >> 8) % NEAR];
	uint64_t thread = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (thread && java_thread_is_sig(thread) && thread_name_lives(thread) && has(thread, word))
		return thread;
	thread = owner_search(has, word);
	if (thread)
		__atomic_store_n(slot, thread, __ATOMIC_RELAXED);
	return thread;
}

/* The id of the virtual thread mounted on @thread; 0 = none. */
static uint64_t owner_mounted(uint64_t thread)
{
	return virtual_is_mounted_sig(thread) ? virtual_id_sig(thread) : 0;
}

uint32_t owner_number(uint64_t java_thread)
{
	uint64_t id = owner_mounted(java_thread);

	return id ? walk_virtual_number(id) : java_thread_tid_sig(java_thread);
}

static bool has_number(uint64_t thread, uint64_t number)
{
	return owner_number(thread) == number;
}

uint64_t owner_thread(uint32_t number)
{
	return vm.usable && number ? owner_find(has_number, number, number) : 0;
}

/* ---- the owner ---- */

/* The id of a Thread. */
static uint64_t id_of(uint64_t object)
{
	return object ? load64_sig(object + (uint32_t)continuation_sig.thread_id) : 0;
}

/*
 * The number of the thread that holds a lock and runs on that JavaThread. For an instant while a
 * virtual thread is being mounted or unmounted, it runs on the carrier but the JVM reports the
 * carrier as the current thread; a park inside `synchronized` on JDK 21 does both. Then its
 * continuation identifies the virtual thread. If that is impossible, the check is repeated for some
 * 8 us; if the carrier has lost its CPU in that time, no owner is reported.
 */
static uint32_t holder_number(uint64_t thread)
{
	int32_t entry = continuation_sig.entry_in_thread;

	for (int i = 0; i < MOUNT_TRIES; i++) {
		uint64_t id = owner_mounted(thread);

		if (!id && entry >= 0 && load64_sig(thread + (uint32_t)entry))
			id = id_of(virtual_entry_thread(thread));
		else if (!id)
			return java_thread_tid_sig(thread);
		if (id)
			return walk_virtual_number(id);
		arch_pause();
	}
	return 0;
}

/* The Thread object of the virtual thread @number that runs on @thread while the JVM reports the
 * carrier as the current thread; 0 = it does not. */
static uint64_t holder_object(uint64_t thread, uint32_t number)
{
	uint64_t id = number & WIRE_VIRTUAL_TID ? owner_mounted(thread) : 0;

	if (!(number & WIRE_VIRTUAL_TID) || walk_virtual_number(id) == number)
		return 0;
	return virtual_entry_thread(thread);
}

/*
 * The number of the thread that has the id @id and runs on @thread: the platform thread itself or a
 * virtual one. While the collector makes the platform thread's own id unreadable, a virtual thread
 * that is being mounted cannot be told from it for an instant.
 */
static uint32_t number_on(uint64_t thread, uint64_t id)
{
	for (int i = 0; i < MOUNT_TRIES; i++) {
		uint64_t own = virtual_platform_id_sig(thread);

		if (own)
			return own == id ? java_thread_tid_sig(thread) : walk_virtual_number(id);
		if (virtual_is_mounted_sig(thread))
			return walk_virtual_number(id);
		if (!has_id(thread, id))
			return 0;
		arch_pause();
	}
	return java_thread_tid_sig(thread);
}

static uint32_t by_id(uint64_t monitor, uint64_t id, uint64_t *ret_thread)
{
	uint64_t thread = owner_find(has_id, id, id);

	*ret_thread = thread;
	if (thread)
		return number_on(thread, id);
	/* no JavaThread: a virtual thread holds the lock and is unmounted, because it waits for
	 * something else. The word is read again, because a thread that has just ended no longer
	 * holds the lock */
	return load64_sig(monitor + (uint32_t)vm.owner) == id ? walk_virtual_number(id) : 0;
}

static uint32_t by_address(uint64_t word, uint64_t *ret_thread)
{
	uint64_t thread = word;

	if (!java_thread_is_sig(thread))
		thread = owner_find(has_stack, word, word >> STACK_GRAIN);
	*ret_thread = thread;
	return thread ? holder_number(thread) : 0;
}

/* The owner of a lock that is in some thread's lock stack. Everything is read twice: if a virtual
 * thread was unmounted in between, the number is another thread's. */
static uint32_t by_lock_stack(uint64_t object, uint64_t *ret_thread)
{
	uint64_t thread = object ? owner_search(has_locked, object) : 0;
	uint32_t number = thread ? holder_number(thread) : 0;

	*ret_thread = thread;
	return number && has_locked(thread, object) && holder_number(thread) == number ? number : 0;
}

/* @ret_thread: the JavaThread that the owner runs on, 0 = none. */
static uint32_t owner_of_monitor(uint64_t monitor, uint64_t object, uint64_t *ret_thread)
{
	uint64_t word = load64_sig(monitor + (uint32_t)vm.owner);

	*ret_thread = 0;
	if (word == ANONYMOUS && vm.lock_stack >= 0)
		return by_lock_stack(object, ret_thread);
	if (word < MARKERS_MAX - 1)
		return 0;
	return vm_sig.thread_monitor_owner >= 0 ? by_id(monitor, word, ret_thread)
						: by_address(word, ret_thread);
}

/* Reports the owner's name while it still holds the lock. @thread: 0 = the owner is an unmounted
 * virtual thread, whose id is in the monitor. */
static void owner_send_name(uint64_t monitor, uint64_t thread, uint32_t number)
{
	uint64_t id, object;

	if (thread) {
		thread_name_on(thread, holder_object(thread, number), number);
		return;
	}
	id = load64_sig(monitor + (uint32_t)vm.owner);
	if (walk_virtual_number(id) != number || thread_name_is_sent(number, id))
		return;
	object = virtual_sets_find(id);
	if (object)
		thread_name_on(0, object, number);
	thread_name_seek(id, number); /* unless it has been reported meanwhile */
}

static bool is_anonymous(uint64_t monitor)
{
	return vm.lock_stack >= 0 && load64_sig(monitor + (uint32_t)vm.owner) == ANONYMOUS;
}

uint32_t owner_of_pending(uint64_t java_thread, void *object, uint64_t *ret_unknown)
{
	static const sigset_t nothing_blocked;
	uint64_t monitor, oop, thread = 0;
	uint32_t number = 0;

	*ret_unknown = 0;
	guard_enter_sig();
	if (vm.usable && vm_known_sig) {
		(void)guard_begin_sig(&nothing_blocked);
		monitor = load64_sig(java_thread + (uint32_t)vm.pending);
		oop = object ? oop_of_handle_sig((uint64_t)(uintptr_t)object) : 0;
		number = monitor ? owner_of_monitor(monitor, oop, &thread) : 0;
		if (number)
			owner_send_name(monitor, thread, number);
		if (monitor && !number && is_anonymous(monitor))
			*ret_unknown = monitor;
	}
	guard_leave_sig();
	return number;
}

/* ---- the agent's thread ---- */

/* The current address of a monitor's object, which may move a moment later; 0 = unknown. */
static uint64_t owner_object_of(uint64_t monitor)
{
	uint64_t slot = monitor + (uint32_t)vm.object;

	if (vm.object < 0)
		return 0;
	if (vm.object_is_handle)
		return oop_of_handle_sig(load64_sig(slot) | HANDLE_WEAK);
	return load64_sig(slot);
}

bool owner_is_unknown(uint64_t monitor, uint64_t *ret_object)
{
	static const sigset_t nothing_blocked;

	if (!vm.usable)
		return false;
	(void)guard_begin_sig(&nothing_blocked);
	*ret_object = owner_object_of(monitor);
	return is_anonymous(monitor);
}

uint32_t owner_by_lock_stack(uint64_t object)
{
	uint64_t thread;
	uint32_t number = by_lock_stack(object, &thread);

	if (number)
		thread_name_on(thread, holder_object(thread, number), number);
	return number;
}

void owner_blocked_on(uint64_t java_thread, struct owner_monitor *ret)
{
	static const sigset_t nothing_blocked;
	uint64_t object, thread;

	*ret = (struct owner_monitor){ 0 };
	if (!vm.usable)
		return;
	(void)guard_begin_sig(&nothing_blocked);
	ret->address = load64_sig(java_thread + (uint32_t)vm.pending);
	if (!ret->address) {
		ret->address = load64_sig(java_thread + (uint32_t)vm.waiting);
		ret->waiting = true;
	}
	if (!ret->address)
		return;
	object = owner_object_of(ret->address);
	ret->class_handle = class_of_object_sig(object, object_klass(object));
	ret->identity = monitor_hash(ret->address, object);
	if (!ret->waiting)
		ret->owner = owner_of_monitor(ret->address, object, &thread);
}

void owner_each_thread(void (*on_thread)(uint64_t java_thread))
{
	struct walk_list list;
	uint64_t thread;

	if (!vm.usable)
		return;
	list_begin(&list);
	while ((thread = list_next(&list)))
		on_thread(thread);
}

/* ---- finding the fields ---- */

static int32_t owner_offset(const char *type, const char *name)
{
	return (int32_t)libjvm_offset(type, name);
}

static bool find_list(void)
{
	vm.next = -1;
	vm.list = libjvm_static("ThreadsSMRSupport", "_java_thread_list");
	vm.list_length = owner_offset("ThreadsList", "_length");
	vm.list_threads = owner_offset("ThreadsList", "_threads");
	if (vm.list)
		return vm.list_length >= 0 && vm.list_threads >= 0;
	vm.list = libjvm_static("Threads", "_thread_list");
	vm.next = owner_offset("JavaThread", "_next");
	return vm.list && vm.next >= 0;
}

void owner_init(void)
{
	vm.pending = libjvm_thread_offset("_current_pending_monitor");
	vm.waiting = libjvm_thread_offset("_current_waiting_monitor");
	vm.lock_stack = owner_offset("JavaThread", "_lock_stack");
	vm.lock_top = owner_offset("LockStack", "_top");
	vm.lock_base = owner_offset("LockStack", "_base[0]");
	vm.owner = owner_offset("ObjectMonitor", "_owner");
	vm.object = owner_offset("ObjectMonitor", "_object");
	vm.object_is_handle = vm_sig.version >= WEAK_OBJECT_SINCE;
	object_header_init();
	virtual_entry_init();
	if (vm.lock_top < 0 || vm.lock_base < 0)
		vm.lock_stack = -1;
	vm.usable = vm_known_sig && find_list() && vm.pending >= 0 && vm.waiting >= 0 &&
		    vm.owner >= 0;
}
