/* See threads.h. The table keeps a hash of each name, to notice that it changed. */
#include "agent/output/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/dict.h"
#include "agent/base/events.h"
#include "agent/base/tasks.h"
#include "agent/engine/cpu_timer.h"
#include "agent/engine/wall.h"
#include "agent/hotspot/jni_names.h"
#include "agent/hotspot/thread_name.h"
#include "agent/output/writer.h"

#define TABLE_MAX	  16384u /* threads; power of two */
#define PROBE_MAX	  64u
#define COMM_READS_MAX	  3u
#define PASS_SHARE	  500 /* passes for new threads may take 1/500 of the time */
#define PASS_PAUSE_MAX_NS NS_PER_S
/* a slot that may be reused, but does not end a search */
#define TID_ENDED (WIRE_VIRTUAL_TID - 1)

struct known {
	uint32_t tid; /* 0 = empty */
	uint8_t java; /* 1 = the name sent is the full Java name */
	uint8_t ended; /* 1 = the thread was gone at the last sweep */
	uint8_t whole; /* 1 = a virtual thread's name was sent uncut */
	uint8_t comm_reads; /* by passes over all threads, after the first one */
	uint16_t pass; /* the last pass over Java threads that found it */
	uint64_t name_hash; /* hash of the name that was sent */
	uint64_t comm_hash; /* hash of the kernel's name */
};

#define IN_PAGE	    (4096 / sizeof(struct known))
#define PENDING_MAX 1024u /* no frame has more records */

static struct known *table;
/* pages of the table that are in use; passes skip all others */
static bool page_used[TABLE_MAX / IN_PAGE + 1];
static uint16_t last_pass; /* number of the last pass over Java threads */
static bool names_missing; /* the Java name of some thread is not known yet */
static uint32_t pending_tids[PENDING_MAX]; /* tids whose names are in the pending frame */
static uint32_t n_pending;

uint64_t threads_bytes(void)
{
	uint64_t bytes = 0;

	for (size_t i = 0; table && i < sizeof(page_used) / sizeof(page_used[0]); i++)
		bytes += page_used[i] ? 4096 : 0;
	return bytes;
}

void threads_free(void)
{
	if (table)
		munmap(table, TABLE_MAX * sizeof(*table));
	table = NULL;
	memset(page_used, 0, sizeof(page_used));
}

void threads_forget(void)
{
	threads_free();
	thread_name_forget_all();
	names_missing = true;
	n_pending = 0;
}

static struct known *threads_known(uint32_t tid)
{
	for (uint32_t i = 0; table && i < PROBE_MAX; i++) {
		struct known *k = &table[(tid + i) & (TABLE_MAX - 1)];

		if (k->tid == tid)
			return k;
		if (k->tid == 0)
			break;
	}
	return NULL;
}

void threads_written(void)
{
	n_pending = 0;
}

/* Only the dropped names are sent again: sending the names of thousands of threads would never
 * succeed through a pipe that fills up. */
void threads_lost(void)
{
	for (uint32_t i = 0; i < n_pending && i < PENDING_MAX; i++) {
		struct known *k = threads_known(pending_tids[i]);

		thread_name_forget(pending_tids[i]);
		if (k)
			k->tid = TID_ENDED;
	}
	names_missing = true;
	n_pending = 0;
}

static struct known *threads_lookup(uint32_t tid, bool *ret_new)
{
	uint32_t first = tid & (TABLE_MAX - 1);
	struct known *slot = NULL;

	*ret_new = false;
	if (!table) {
		void *p = mmap(NULL, TABLE_MAX * sizeof(*table), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return NULL;
		table = p;
	}
	for (uint32_t i = 0; i < PROBE_MAX; i++) {
		struct known *k = &table[(first + i) & (TABLE_MAX - 1)];

		if (k->tid == tid)
			return k;
		if (!slot && (k->tid == 0 || k->tid == TID_ENDED))
			slot = k;
		if (k->tid == 0)
			break;
	}
	/* no slot is free: takes the first one; the thread that had it is sent again if it lives */
	if (!slot)
		slot = &table[first];
	*ret_new = true;
	page_used[(size_t)(slot - table) / IN_PAGE] = true;
	*slot = (struct known){ .tid = tid };
	return slot;
}

static void threads_add_pending(uint32_t tid)
{
	if (n_pending < PENDING_MAX)
		pending_tids[n_pending++] = tid;
}

static void threads_send(uint32_t tid, uint32_t flags, uint64_t java_id, const char *name)
{
	struct wire_thread record = {
		.tid = tid,
		.flags = flags,
		.java_id = java_id,
		.name = wire_text(name),
	};

	threads_add_pending(tid);
	writer_thread(&record);
	/* the full frame was flushed before: its names are written or lost, perhaps with this
	 * one */
	if (n_pending == 0)
		threads_add_pending(tid);
}

static bool threads_read_comm(uint32_t tid, char *name, size_t size)
{
	char path[64];
	long n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, name, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	name[name[n - 1] == '\n' ? n - 1 : n] = '\0';
	return true;
}

void threads_seen(uint32_t tid, const char *name)
{
	char comm[32];
	uint64_t hash;
	struct known *k;
	bool is_new;

	k = threads_lookup(tid, &is_new);
	if (!k || (!is_new && !name[0]))
		return;
	if (!name[0]) {
		if (!threads_read_comm(tid, comm, sizeof(comm)))
			return; /* the thread has ended: without a name the daemon shows its tid */
		name = comm;
	}
	hash = dict_hash(name, (uint32_t)strlen(name));
	/* a pass has found it before its first sample */
	if (k->java && !k->comm_hash)
		k->comm_hash = hash;
	/* unchanged, unless the tid is new or was reused */
	if (!is_new && k->comm_hash == hash)
		return;
	names_missing = true;
	k->java = 0;
	k->comm_hash = k->name_hash = hash;
	threads_send(tid, 0, 0, name);
}

void threads_owner(uint32_t tid)
{
	if (tid && !(tid & WIRE_VIRTUAL_TID))
		threads_seen(tid, "");
}

uint32_t threads_virtual(uint64_t id, const char *name)
{
	uint32_t tid = name[0] ? walk_virtual_number(id) : WIRE_VIRTUAL_TID;
	struct known *k;
	bool is_new;

	/* there may be millions of unnamed threads: they share one number */
	if (!name[0]) {
		name = "[unnamed virtual threads]";
		id = 0;
	}
	k = threads_lookup(tid, &is_new);
	if (!k || (!is_new && k->name_hash == dict_hash(name, (uint32_t)strlen(name))))
		return tid;
	if (k->whole && strlen(name) >= WALK_NAME_WHOLE)
		return tid;
	k->java = 1;
	k->whole = 0;
	k->comm_hash = k->name_hash = dict_hash(name, (uint32_t)strlen(name));
	threads_send(tid, WIRE_THREAD_JAVA | WIRE_THREAD_VIRTUAL, id, name);
	return tid;
}

/* Has the thread ended? The kernel may then give its tid to another thread. */
static bool threads_has_ended(const struct known *k)
{
	uint32_t tid = k->tid;

	if (tid & WIRE_VIRTUAL_TID)
		/* not known for virtual threads: they are forgotten, and sent again with their next
		 * sample */
		return true;
	/* asks the kernel only about threads that were not found a moment ago */
	if ((k->java && k->pass == last_pass) || slot_find_sig(tid))
		return false;
	return syscall(SYS_tgkill, (long)getpid(), (long)tid, 0l) < 0 && errno == ESRCH;
}

void threads_sweep(void)
{
	for (uint32_t i = 0; table && i < TABLE_MAX; i++) {
		struct known *k = &table[i];

		if (!page_used[i / IN_PAGE]) {
			i += IN_PAGE - 1 - i % IN_PAGE;
			continue;
		}
		if (k->tid == 0 || k->tid == TID_ENDED)
			continue;
		if (!threads_has_ended(k)) {
			k->ended = 0;
			continue;
		}
		/* its last samples may still be in the ring: the end is sent at the next sweep */
		if (!k->ended) {
			k->ended = 1;
			continue;
		}
		if (!(k->tid & WIRE_VIRTUAL_TID))
			threads_send(k->tid, WIRE_THREAD_ENDED | (k->java ? WIRE_THREAD_JAVA : 0),
				     0, "");
		if (!table) /* the pipe was full, and all names have been forgotten */
			return;
		thread_name_forget(k->tid);
		k->tid = TID_ENDED;
	}
}

/* @in_pass: called from a pass over all Java threads, which found it alive. */
static void threads_set_name(uint32_t tid, uint64_t java_id, const char *name, uint32_t flags,
			     bool in_pass)
{
	/* with the id, as a later thread may have the tid and the name of an ended one */
	uint64_t hash = dict_hash(name, (uint32_t)strlen(name)) ^ java_id * 0x9e3779b97f4a7c15ull;
	struct known *k;
	bool is_new;

	thread_name_mark_sent(tid, java_id);
	k = threads_lookup(tid, &is_new);
	if (!k)
		return;
	if (in_pass)
		k->pass = last_pass;
	if (flags & WIRE_THREAD_VIRTUAL)
		k->whole = 1;
	if (k->java && k->name_hash == hash)
		return;
	/* sent even if the kernel's name is the same: the daemon learns that it is a Java thread */
	k->java = 1;
	k->name_hash = hash;
	/* the kernel's name may have changed, too: the next one is taken for that of this thread */
	k->comm_hash = 0;
	/* must come last: if the pipe is full all names are forgotten, and the table is unmapped */
	threads_send(tid, flags, java_id, name);
}

void threads_java_name(uint32_t tid, uint64_t java_id, const char *name)
{
	if (events_on(WIRE_EVENT_WALL))
		wall_thread_seen(tid, name);
	threads_set_name(tid, java_id, name, WIRE_THREAD_JAVA, true);
}

void threads_named(uint32_t tid, uint64_t java_id, const char *name)
{
	uint32_t is_virtual = tid & WIRE_VIRTUAL_TID ? WIRE_THREAD_VIRTUAL : 0;

	threads_set_name(tid, java_id, name, WIRE_THREAD_JAVA | is_virtual, false);
}

bool threads_are_missing(void)
{
	return names_missing;
}

void threads_name_all(void)
{
	jni_names_pass(threads_java_name, NULL);
}

/* A thread that starts has the name of the one that made it: passes read it again. */
static void threads_on_task(uint32_t tid, void *context)
{
	struct known *k = threads_known(tid);
	char comm[32];

	(void)context;
	if (!k) {
		threads_seen(tid, "");
	} else if (!k->java && k->comm_reads < COMM_READS_MAX) {
		k->comm_reads++;
		if (threads_read_comm(tid, comm, sizeof(comm)))
			threads_seen(tid, comm);
	}
}

/* Runs a pass for new threads at once if passes are cheap, later if they are not. */
void threads_refresh(bool force)
{
	static uint64_t next_ns;
	uint64_t begin_ns, pause_ns;

	if (!force && (!names_missing || mono_ns() < next_ns))
		return;
	names_missing = false;
	last_pass++;
	begin_ns = thread_cpu_ns(0);
	threads_name_all();
	/* the JVM's own threads, and those that other libraries have made */
	if (__atomic_load_n(&engine.offcpu, __ATOMIC_RELAXED))
		tasks_each(threads_on_task, NULL);
	pause_ns = (thread_cpu_ns(0) - begin_ns) * PASS_SHARE;
	next_ns = mono_ns() + (pause_ns < PASS_PAUSE_MAX_NS ? pause_ns : PASS_PAUSE_MAX_NS);
}
