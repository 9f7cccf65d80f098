/*
 * See host.h. The rooms are opened in the order of their dependencies and closed in reverse order.
 * A clean end detaches every agent first.
 */
#include "daemon/host/moments.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/heap.h"
#include "daemon/discovery/look.h"
#include "daemon/ground/beside.h"
#include "daemon/ground/clock.h"

#define SHUTDOWN_NS (6 * NS_PER_S)
#define GIVE_BACK_S 10 /* seconds; windows take as long to close */
#define MEMORY_NS   (NS_PER_S / 10)
#define SETTLED_NS  (450 * NS_PER_MS)

static void expire_stacks(struct host *h)
{
	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		struct host_entry *e = t->userdata;

		if (e)
			host_sampling_expire(&e->sampling);
	}
}

static void host_on_second(void *userdata)
{
	struct host *h = userdata;
	uint64_t begin_ns;

	host_expire_states(h);
	host_take_times(h); /* before a rest can begin, with which the totals end */
	host_sampling_tick(h->sampling);
	expire_stacks(h);
	host_take_cpu_of_all(h);
	host_write_gaps(h);
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	live_tick(h->live, clock_real_ns());
	targets_charge(h->targets, clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
	timelines_tick(h->timelines, clock_real_ns());
	uploads_on_second(h);
	host_note_followed(h);
	if (++h->seconds % GIVE_BACK_S == 0)
		heap_give_back();
}

/* host_on_second() first runs SETTLED_NS after a full second: by then its samples have arrived,
 * also those that an agent had for 100 ms and a receiver gathered for 300, so that after the next
 * second few slices are written to the journal a third time. */
static uint64_t first_second_ns(void)
{
	return NS_PER_S + SETTLED_NS - clock_real_ns() % NS_PER_S;
}

static void on_memory(void *userdata)
{
	host_check_memory(userdata);
	host_gaps_hurry(userdata);
}

/* Opens kindling-look. `kindling record` looks at its one JVM in its own process: nobody else
 * has to wait for it. */
static int open_look(struct host *h, struct fault *f)
{
	static const char name[] = "kindling-look";
	char program[256];
	int r = -ENOENT;

	if (beside_find_program(program, sizeof(program), name))
		r = look_new(h->loop, program, &h->look);
	return r < 0 ? fault_set(f, -r, FAULT_INTERNAL, "start %s: ", name) : 0;
}

/* Without the program JVMs are known by the host's files, and status says so. */
static int open_names(struct host *h)
{
	char program[256];

	if (!h->config->names_cri[0])
		return 0;
	if (!beside_find_program(program, sizeof(program), "kindling-names"))
		program[0] = '\0';
	return names_new(h->loop, program, h->config->names_cri, &host_names_calls, h, &h->names);
}

/* Waits that end from now on are judged by the names of the setting `idle`. */
static void host_take_idle(struct host *h)
{
	uint16_t before = idle_version();

	idle_add(h->config->idle, strlen(h->config->idle));
	if (idle_version() == before || !h->targets)
		return;
	for (struct target *t = targets_next(h->targets, NULL); t; t = targets_next(h->targets, t))
		if (t->stream)
			stream_forget_marks(t->stream);
}

static int open_rooms(struct host *h, bool discover, bool persist, struct fault *f)
{
	char path[300];
	int r;

	host_take_idle(h);
	r = discover ? open_look(h, f) : 0;
	if (r < 0)
		return r;
	r = worker_new(h->loop, &h->worker);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "start the worker: ");
	snprintf(path, sizeof(path), "%s/symbols", h->config->state_dir);
	r = symbols_new(h->loop, path, h->config->symbols_max_bytes, &host_opener, h, &h->symbols);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "%.80s: ", path);
	snprintf(path, sizeof(path), "%s/segments", h->config->state_dir);
	if (persist) {
		r = store_new(path, h->config->retention_ns, h->config->store_max_bytes, &h->store);
		if (r < 0)
			return fault_set(f, -r, FAULT_INTERNAL, "%.80s: ", path);
		r = gaps_open(h->config->state_dir, &h->gaps);
		if (r < 0)
			return fault_set(f, -r, FAULT_INTERNAL,
					 "open %.80s/sampled: ", h->config->state_dir);
	}
	r = live_new(host_on_window, h, &h->live);
	if (r == 0)
		live_on_slice(h->live, host_on_slice);
	if (r == 0)
		live_limit(h->live, h->config->memory_bytes);
	if (r == 0)
		live_keep_ids(h->live, h->config->trace_keep);
	if (r == 0)
		r = timelines_new(&h->timelines);
	if (r == 0)
		timelines_limit(h->timelines, host_moments_bytes(h->config));
	if (r == 0) /* from the next full second on */
		live_begin_at(h->live, (clock_real_ns() / LIVE_SLICE_NS + 1) * LIVE_SLICE_NS);
	if (r == 0)
		r = host_sampling_new(h->config, host_stacks_of, h, &h->sampling);
	if (r == 0)
		r = targets_new(h->loop, h->config, &host_target_calls, h, &h->targets);
	if (r == 0)
		r = host_offcpu_open(h);
	if (r == 0)
		targets_look(h->targets, h->look);
	if (r == 0)
		r = loop_timer_add(h->loop, first_second_ns(), NS_PER_S, host_on_second, h,
				   &h->second);
	if (r == 0)
		r = loop_timer_add(h->loop, MEMORY_NS, MEMORY_NS, on_memory, h, &h->memory_timer);
	if (r == 0 && discover)
		r = open_names(h);
	if (r == 0 && discover)
		r = discovery_new(h->loop, h->config, h->look, &host_discovery_calls, h,
				  &h->discovery);
	if (r == 0 && discover) {
		/* the previous daemon's targets come first: until they are attached to again they
		 * are not sampled */
		uint32_t n;
		pid_t *former = targets_former(h->targets, &n);

		discovery_look_first(h->discovery, former, n);
	}
	return r < 0 ? fault_set(f, -r, FAULT_INTERNAL, "open the rooms: ") : 0;
}

int host_new(struct loop *loop, const struct config *config, bool discover, bool persist,
	     struct host **ret, struct fault *f)
{
	CLEANUP(host_freep) struct host *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return fault_set(f, ENOMEM, FAULT_INTERNAL, "no memory");
	h->loop = loop;
	h->config = config;
	h->start_mono_ns = clock_mono_ns();
	r = open_rooms(h, discover, persist, f);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(h);
	return 0;
}

struct host *host_free(struct host *h)
{
	if (!h)
		return NULL;
	discovery_free(h->discovery);
	names_free(h->names);
	loop_timer_free(h->second);
	loop_timer_free(h->memory_timer);
	loop_timer_free(h->shutdown_timer);
	uploads_free(h->uploads);
	host_offcpu_close(h);
	h->targets = targets_free(h->targets);
	host_sampling_free(h->sampling);
	timelines_free(h->timelines);
	h->live = live_free(h->live); /* closes the last windows, which go to the worker */
	if (h->store)
		store_hurry(h->store);
	worker_free(h->worker);
	store_free(h->store);
	symbols_free(h->symbols);
	gaps_free(h->gaps);
	look_free(h->look);
	free(h);
	return NULL;
}

static void on_shutdown_tick(void *userdata)
{
	struct host *h = userdata;

	if (!targets_quiet(h->targets) && clock_mono_ns() < h->shutdown_by_mono_ns)
		return;
	h->shutdown_timer = loop_timer_free(h->shutdown_timer);
	host_write_gaps(h);
	h->on_down(h->down_userdata);
}

void host_shutdown(struct host *h, void (*done)(void *userdata), void *userdata)
{
	if (h->shutdown_timer)
		return;
	h->on_down = done;
	h->down_userdata = userdata;
	h->discovery = discovery_free(h->discovery);
	h->names = names_free(h->names);
	h->shutdown_by_mono_ns = clock_mono_ns() + SHUTDOWN_NS;
	targets_stop(h->targets);
	(void)loop_timer_add(h->loop, 0, 10 * NS_PER_MS, on_shutdown_tick, h, &h->shutdown_timer);
}

void host_settings(struct host *h)
{
	host_take_idle(h);
	live_limit(h->live, h->config->memory_bytes);
	live_keep_ids(h->live, h->config->trace_keep);
	timelines_limit(h->timelines, host_moments_bytes(h->config));
	targets_settings(h->targets);
	uploads_on_settings(h);
}

struct loop *host_loop(struct host *h)
{
	return h->loop;
}

const struct config *host_config(struct host *h)
{
	return h->config;
}

struct targets *host_targets(struct host *h)
{
	return h->targets;
}

struct live *host_live(struct host *h)
{
	return h->live;
}

struct store *host_store(struct host *h)
{
	return h->store;
}

struct symbols *host_symbols(struct host *h)
{
	return h->symbols;
}

struct look *host_look(struct host *h)
{
	return h->look;
}

struct names *host_names(struct host *h)
{
	return h->names;
}

struct discovery *host_discovery(struct host *h)
{
	return h->discovery;
}

uint64_t host_start_mono_ns(struct host *h)
{
	return h->start_mono_ns;
}

uint64_t host_windows_dropped(struct host *h)
{
	return h->windows_dropped;
}

/* Does any listener, or a recording, want the events of @t without delay? */
static bool host_is_followed(const struct host *h, const struct target *t)
{
	const struct host_entry *e = t->userdata;

	if (e && e->recorded)
		return true;
	for (const struct host_listener *l = h->listeners; l; l = l->next)
		if (!l->wants || l->wants(l->userdata, t))
			return true;
	return false;
}

void host_note_followed(struct host *h)
{
	struct target *t = NULL;

	while (h->targets && (t = targets_next(h->targets, t)))
		target_follow(t, host_is_followed(h, t));
}

void host_listen(struct host *h, struct host_listener *l)
{
	l->next = h->listeners;
	h->listeners = l;
	host_note_followed(h);
}

void host_unlisten(struct host *h, struct host_listener *l)
{
	struct host_listener **link;

	for (link = &h->listeners; *link && *link != l; link = &(*link)->next)
		;
	if (*link)
		*link = l->next;
	host_note_followed(h);
}

const struct host_engine *host_sampler(struct host *h, const char **ret_why)
{
	return host_sampling_engine(h->sampling, ret_why);
}

uint64_t host_tick_price_ns(struct host *h)
{
	return host_sampling_price_ns(h->sampling);
}

const struct kernel_frames *host_kernel_frames(struct host *h)
{
	return host_sampling_frames(h->sampling);
}
