/* See kernel_frames.h. */
#include "daemon/host/kernel_frames.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/log.h"
#include "daemon/symbols/kallsyms.h"

struct kernel_frames {
	struct host_engine *engine;
	kernel_frames_find_fn *find;
	void *userdata;
	/* the reader owns names and names_result until it is joined */
	pthread_t reader;
	bool reading, has_read;
	FILE *from;
	int names_result;
	struct kallsyms *names; /* NULL = none, for the reason in note */
	struct kernel_stacks_counts counts;
	char note[120];
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Sets the note. Without rights the file can be read, but all addresses in it are 0. */
static void explain_names(struct kernel_frames *k)
{
	int r = k->names_result;

	if (r == -EACCES)
		snprintf(
			k->note, sizeof(k->note),
			"no names: the kernel hides its addresses; kindlingd needs CAP_SYSLOG, and kernel.kptr_restrict must be below 2");
	else if (r < 0)
		snprintf(k->note, sizeof(k->note), "no names: cannot read /proc/kallsyms: %s",
			 strerror(-r));
	if (r < 0)
		log_warn("kernel_frames.names", "why=%s", log_str(k->note));
}

static void *read_names(void *userdata)
{
	struct kernel_frames *k = userdata;

	k->names_result = kallsyms_read(k->from, &k->names);
	__atomic_store_n(&k->has_read, true, __ATOMIC_RELEASE);
	return NULL;
}

static void end_names(struct kernel_frames *k)
{
	if (!k->reading)
		return;
	pthread_join(k->reader, NULL);
	k->reading = false;
	fclose(k->from);
	explain_names(k);
}

/*
 * Reads the names in a thread that then ends: reading takes half of the CPU time of a start, JVMs
 * wait for the start, and no name is needed before the first sample. The file is opened now,
 * because the kernel shows addresses according to the rights at that moment.
 */
static void begin_names(struct kernel_frames *k)
{
	k->from = fopen("/proc/kallsyms", "re");
	if (!k->from) {
		k->names_result = -errno;
		explain_names(k);
		return;
	}
	k->reading = pthread_create(&k->reader, NULL, read_names, k) == 0;
	if (k->reading)
		return;
	(void)read_names(k);
	fclose(k->from);
	explain_names(k);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static void kernel_frames_on_stack(void *userdata, pid_t pid, uint32_t tid, uint64_t mono_ns,
				   const uint64_t *ips, unsigned n)
{
	struct kernel_frames *k = userdata;
	struct kernel_stacks *stacks = k->find(k->userdata, pid);

	if (stacks) {
		kernel_stacks_add(stacks, tid, mono_ns, ips, n);
	} else {
		k->counts.taken++;
		k->counts.unmatched++;
	}
}

int kernel_frames_new(struct host_engine *engine, kernel_frames_find_fn *find, void *userdata,
		      struct kernel_frames **ret)
{
	struct kernel_frames *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->engine = engine;
	k->find = find;
	k->userdata = userdata;
	r = host_engine_take_stacks(engine, kernel_frames_on_stack, k);
	if (r < 0) {
		free(k);
		return r;
	}
	begin_names(k);
	*ret = k;
	return 0;
}

struct kernel_frames *kernel_frames_free(struct kernel_frames *k)
{
	if (!k)
		return NULL;
	end_names(k);
	kallsyms_free(k->names);
	free(k);
	return NULL;
}

int kernel_frames_stacks_new(struct kernel_frames *k, struct kernel_stacks **ret)
{
	return kernel_stacks_new(&k->counts, ret);
}

void kernel_frames_drain(struct kernel_frames *k)
{
	if (__atomic_load_n(&k->has_read, __ATOMIC_ACQUIRE))
		end_names(k);
	host_engine_drain(k->engine);
}

static const char *kernel_frames_name_of(void *userdata, uint64_t address)
{
	struct kernel_frames *k = userdata;

	end_names(k);
	return kallsyms_name(k->names, address);
}

struct kernel_stack *kernel_frames_take(struct kernel_frames *k, struct kernel_stacks *stacks,
					const struct stream *stream,
					const struct stream_sample *sample, struct live_kernel *ret)
{
	struct kernel_stack *first = NULL;
	struct stream_frame leaf;
	uint32_t parent;

	*ret = (struct live_kernel){ .name = kernel_frames_name_of, .userdata = k };
	kernel_frames_drain(k);
	/* a label such as "[no signal]" is no code that could have called the kernel */
	if (stream_node(stream, sample->node, &leaf, &parent) && leaf.kind == WIRE_KIND_SYNTHETIC)
		return NULL;
	ret->n = kernel_stacks_take(stacks, sample->tid, sample->mono_ns, &first);
	ret->first = first;
	return first;
}

struct live_kernel kernel_frames_of(struct kernel_frames *k, const struct kernel_stack *first)
{
	return (struct live_kernel){
		.first = first,
		.n = 1,
		.name = kernel_frames_name_of,
		.userdata = k,
	};
}

void kernel_frames_counts(const struct kernel_frames *k, struct kernel_frames_counts *ret)
{
	struct host_engine_counts c;

	host_engine_counts(k->engine, &c);
	*ret = (struct kernel_frames_counts){
		.taken = c.stacks,
		.matched = k->counts.matched,
		.unmatched = k->counts.unmatched,
		.lost = k->counts.lost + c.stacks_lost,
	};
}

const char *kernel_frames_note(const struct kernel_frames *k)
{
	return k->note;
}
