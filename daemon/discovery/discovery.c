/*
 * See discovery.h. There are two timers: one for processes to look at again soon (`due`), one for
 * scans. A scan lists /proc at once, but looks at the processes in small portions, so that
 * thousands of processes do not hold up the loop.
 */
#include "daemon/discovery/discovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/bpf/exec_events.h"
#include "daemon/discovery/discovery_priv.h"
#include "daemon/discovery/look.h"
#include "daemon/discovery/processes.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/proc.h"

#define DUE_MAX		 512 /* processes to look at again soon; the others wait for the scan */
#define ROUND_PROBES_MAX 16
#define PIDS_MAX	 (1u << 20)
#define SCAN_WITHOUT_BPF NS_PER_S
#define YOUNG_FOR_NS	 (5 * NS_PER_S)
#define PORTION_PAUSE_NS NS_PER_MS
/* Retry delay when the limit of open questions is reached. */
#define LATER_NS (200 * NS_PER_MS)
/* Retry delay when other processes of the same tenant answer slowly. */
#define SLOW_NS	    (500 * NS_PER_MS)
#define AGAIN_NS    (10 * NS_PER_S) /* delay before on_jvm() is called again, doubled */
#define AGAIN_TIMES 5 /* up to this many times */
/* A process that was found to be no JVM is checked again after at most this many scans. */
#define SKIP_SCANS_MAX 8

struct discovery {
	struct loop *loop;
	struct discovery_ops ops;
	void *userdata;
	int proc_dfd;
	struct processes *processes;
	struct look *look; /* borrowed; NULL = look in this process (tests) */
	struct exec_events *events; /* NULL = scan only */
	char why[EXEC_EVENTS_WHY_MAX];
	struct loop_timer *due_timer, *scan_timer;
	uint64_t scan_interval_ns; /* of full scans */
	uint64_t full_scan_mono_ns; /* begin of the last full scan; 0 = none yet */
	bool full; /* this scan also looks at known processes */
	uint32_t generation;
	pid_t *pids; /* pids of the running scan; NULL = none */
	uint32_t n_pids, next_pid;
	pid_t *first; /* with these the first scan begins; NULL = none, or it has begun */
	uint32_t n_first;
	uint64_t probes, overflow, lost;
};

/* When to look at a process after the start of its program: libjvm is mapped 1 ms after the exec of
 * java, and the handler of SIGQUIT is installed 5 to 50 ms after it. */
static const uint64_t often_ns[] = {
	1 * NS_PER_MS,	 2 * NS_PER_MS,	 5 * NS_PER_MS,	  10 * NS_PER_MS,
	20 * NS_PER_MS,	 50 * NS_PER_MS, 100 * NS_PER_MS, 200 * NS_PER_MS,
	500 * NS_PER_MS, 1 * NS_PER_S,	 2 * NS_PER_S,	  YOUNG_FOR_NS,
};
/* For programs that are not called java, of which a host that compiles starts thousands. */
static const uint64_t seldom_ns[] = { 5 * NS_PER_MS, 50 * NS_PER_MS, 500 * NS_PER_MS,
				      YOUNG_FOR_NS };

/* Schedules the next look at @p; after the last delay only scans look at it. */
static void discovery_schedule(struct discovery *d, struct process *p, uint64_t now)
{
	const uint64_t *steps = p->likely ? often_ns : seldom_ns;
	size_t n = p->likely ? ARRAY_SIZE(often_ns) : ARRAY_SIZE(seldom_ns);
	uint64_t due = 0;

	for (size_t i = 0; i < n && !due; i++)
		if (p->begin_mono_ns + steps[i] > now)
			due = p->begin_mono_ns + steps[i];
	if (due && !p->due_mono_ns && processes_due_count(d->processes) >= DUE_MAX) {
		d->overflow++;
		due = 0;
	}
	processes_set_due(d->processes, p, due);
}

static void discovery_arm(struct discovery *d)
{
	uint64_t now = clock_mono_ns(), first = UINT64_MAX;

	for (struct process *p = processes_due(d->processes); p; p = p->due_next)
		if (p->due_mono_ns < first && !p->question)
			first = p->due_mono_ns;
	if (first != UINT64_MAX)
		loop_timer_set(d->due_timer, first > now ? first - now : 0, 0);
}

/* Calls on_jvm() again later. If too many processes are due already, a scan does it. */
static void discovery_report_later(struct discovery *d, struct process *p)
{
	unsigned n = p->refusals < AGAIN_TIMES ? p->refusals++ : AGAIN_TIMES;

	p->reported = false;
	if (processes_due_count(d->processes) < DUE_MAX)
		processes_set_due(d->processes, p, clock_mono_ns() + (AGAIN_NS << n));
}

static void discovery_report(struct discovery *d, struct process *p, const struct jvm *jvm)
{
	p->reported = true;
	processes_set_due(d->processes, p, 0);
	if (!d->ops.on_jvm(d->userdata, jvm, p->seen_mono_ns))
		discovery_report_later(d, p);
}

void discovery_ask_again(struct discovery *d, pid_t pid)
{
	struct process *p = processes_find(d->processes, pid);

	if (p && p->reported) {
		discovery_report_later(d, p);
		discovery_arm(d);
	}
}

static void discovery_judge(struct discovery *d, struct process *p, int r, const struct jvm *jvm)
{
	uint64_t now = clock_mono_ns();

	p->denied = r == -EACCES || r == -EPERM;
	if (r == -ESRCH) {
		processes_remove(d->processes, p);
		return;
	}
	if (r == -ETIMEDOUT || r == -EBUSY) { /* only a scan looks at it again, and seldom */
		processes_set_due(d->processes, p, 0);
		p->idle_scans = SKIP_SCANS_MAX;
		return;
	}
	if (r < 0 || r == JVM_NO) {
		discovery_schedule(d, p, now);
		return;
	}
	p->start_time = jvm->start_time;
	p->likely = true;
	if (r == JVM_READY || now - p->begin_mono_ns >= YOUNG_FOR_NS)
		discovery_report(d, p, jvm);
	else
		discovery_schedule(d, p, now);
}

static void discovery_go_on(struct discovery *d);

static void discovery_on_look(void *userdata, const struct look_answer *a, int fds[LOOK_FDS])
{
	struct process *p = userdata;
	struct discovery *d = p->asker;

	(void)fds;
	p->question = NULL;
	discovery_judge(d, p, a->result, &a->jvm);
	discovery_go_on(d);
}

/* Delays the look at @p, because other processes of its tenant answer slowly; so those of other
 * tenants come first. */
static void discovery_look_later(struct discovery *d, struct process *p)
{
	if (p->due_mono_ns || processes_due_count(d->processes) < DUE_MAX)
		processes_set_due(d->processes, p, clock_mono_ns() + SLOW_NS);
	else
		d->overflow++;
}

static int discovery_ask(struct discovery *d, struct process *p)
{
	const struct look_question q = { .kind = LOOK_JVM, .pid = p->pid };

	if (!p->tenant)
		p->tenant = look_tenant_of(p->pid);
	p->asker = d;
	return look_ask(d->look, &q, p->tenant, -1, discovery_on_look, p, &p->question);
}

/* Looks at a process. false = the limit of open questions is reached: try again later. */
static bool discovery_look_at(struct discovery *d, struct process *p)
{
	struct jvm jvm;
	int r;

	if (p->question)
		return true;
	r = d->look ? discovery_ask(d, p) : jvm_probe(d->proc_dfd, p->pid, &jvm);
	if (d->look && (r == -EAGAIN || r == -ENOSPC))
		return false;
	d->probes++;
	if (d->look && r == -EALREADY)
		discovery_look_later(d, p);
	else if (!d->look || r < 0)
		discovery_judge(d, p, r, &jvm);
	return true;
}

static void discovery_on_due(void *userdata)
{
	struct discovery *d = userdata;
	uint64_t now = clock_mono_ns();
	int left = ROUND_PROBES_MAX;

	for (struct process *p = processes_due(d->processes), *next; p && left; p = next) {
		next = p->due_next;
		if (p->due_mono_ns > now || p->question)
			continue;
		if (!discovery_look_at(d, p)) { /* the next answer continues, or this timer */
			loop_timer_set(d->due_timer, LATER_NS, 0);
			return;
		}
		left--;
	}
	discovery_arm(d);
}

static bool discovery_read_stat(struct discovery *d, pid_t pid, struct proc_stat *ret)
{
	CLEANUP(fd_closep) int pid_dfd = proc_open(d->proc_dfd, pid);
	char text[1024];

	return pid_dfd >= 0 && proc_read(pid_dfd, "stat", text, sizeof(text)) >= 0 &&
	       proc_parse_stat(text, ret);
}

static uint64_t discovery_read_start_time(struct discovery *d, pid_t pid)
{
	struct proc_stat stat;

	return discovery_read_stat(d, pid, &stat) ? stat.start_time : 0;
}

/*
 * Does this scan look at @p? Most processes are not JVMs and never will be, so only every second,
 * fourth or eighth scan does, unless the name has changed, as by an exec that was not reported.
 */
static bool discovery_is_due_in_scan(struct discovery *d, struct process *p)
{
	struct proc_stat stat = { .comm = "" };

	(void)discovery_read_stat(d, p->pid, &stat);
	if (strncmp(stat.comm, p->comm, sizeof(p->comm)) == 0 && p->skip_scans) {
		p->skip_scans--;
		return false;
	}
	if (strncmp(stat.comm, p->comm, sizeof(p->comm)) != 0)
		p->idle_scans = 0;
	memcpy(p->comm, stat.comm, sizeof(p->comm));
	if (p->idle_scans < SKIP_SCANS_MAX)
		p->idle_scans = p->idle_scans ? 2 * p->idle_scans : 1;
	p->skip_scans = p->idle_scans - 1;
	return true;
}

/* The age of a process that started @start_time clock ticks after boot. */
static uint64_t discovery_age_ns(uint64_t start_time)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME);
	uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK), began;

	if (__builtin_mul_overflow(start_time, NS_PER_S / ticks_per_s, &began) || began > now)
		return 0;
	return now - began;
}

/* The entry of @pid, which is replaced if it is about an earlier process with this pid. */
static struct process *discovery_entry_of(struct discovery *d, pid_t pid, uint64_t mono_ns)
{
	struct process *p = processes_find(d->processes, pid);

	if (p && p->start_time && p->start_time != discovery_read_start_time(d, pid)) {
		processes_remove(d->processes, p);
		p = NULL;
	}
	if (!p) {
		p = processes_get(d->processes, pid);
		if (p)
			p->seen_mono_ns = mono_ns;
	}
	if (p)
		p->generation = d->generation;
	return p;
}

void discovery_exec(struct discovery *d, pid_t pid, const char *comm, uint64_t mono_ns)
{
	struct process *p = discovery_entry_of(d, pid, mono_ns);

	if (!p || p->reported)
		return;
	p->seen_mono_ns = p->begin_mono_ns = mono_ns;
	p->idle_scans = p->skip_scans = 0;
	p->tenant = 0;
	p->likely = strncmp(comm, "java", 4) == 0;
	discovery_schedule(d, p, mono_ns);
	discovery_arm(d);
}

void discovery_exit(struct discovery *d, pid_t pid, uint64_t mono_ns)
{
	struct process *p = processes_find(d->processes, pid);

	/* before the event was read a scan may have found the next process with this pid */
	if (p && p->seen_mono_ns <= mono_ns)
		processes_remove(d->processes, p);
}

static void discovery_on_exec(void *userdata, pid_t pid, const char *comm, uint64_t mono_ns)
{
	discovery_exec(userdata, pid, comm, mono_ns);
}

static void discovery_on_exit(void *userdata, pid_t pid, int status, uint64_t mono_ns)
{
	struct discovery *d = userdata;

	if (d->ops.on_exit)
		d->ops.on_exit(d->userdata, pid, status);
	discovery_exit(d, pid, mono_ns);
}

/* Lists all pids in /proc; *ret is malloc'ed. 0 or -errno. */
static int discovery_list_pids(int proc_dfd, pid_t **ret, uint32_t *ret_n)
{
	CLEANUP(freep) pid_t *pids = NULL;
	uint32_t n = 0, room = 0;
	const struct dirent *e;
	DIR *dir;
	int fd;

	fd = openat(proc_dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int r = -errno;

		fd_close(fd);
		return r;
	}
	while (n < PIDS_MAX && (e = readdir(dir))) {
		char *end;
		long pid = strtol(e->d_name, &end, 10);

		if (*end || pid <= 0 || pid > INT32_MAX)
			continue;
		if (n == room) {
			pid_t *more = realloc(pids, (room ? 2 * room : 1024) * sizeof(*pids));

			if (!more)
				break;
			pids = more;
			room = room ? 2 * room : 1024;
		}
		pids[n++] = (pid_t)pid;
	}
	closedir(dir);
	*ret = TAKE_PTR(pids);
	*ret_n = n;
	return 0;
}

/* Handles one process of a scan. 1 = it was looked at, 0 = no look was needed, -EAGAIN = later. */
static int discovery_scan_one(struct discovery *d, pid_t pid)
{
	uint64_t now = clock_mono_ns();
	struct process *p;

	if (!d->full) {
		p = processes_find(d->processes, pid);
		if (p) { /* seen a second ago: pids are not reused so soon */
			p->generation = d->generation;
			return 0;
		}
	}
	p = discovery_entry_of(d, pid, now);
	if (!p || p->reported || p->due_mono_ns || p->question)
		return 0;
	if (!p->begin_mono_ns) {
		uint64_t age;

		p->start_time = discovery_read_start_time(d, pid);
		age = discovery_age_ns(p->start_time);
		p->begin_mono_ns = age < now ? now - age : 1;
	}
	if (!p->wants_look && !discovery_is_due_in_scan(d, p))
		return 0;
	p->wants_look = true; /* a look that has to wait is not counted again */
	if (!discovery_look_at(d, p))
		return -EAGAIN;
	p = processes_find(d->processes, pid);
	if (p)
		p->wants_look = false;
	return 1;
}

static uint64_t discovery_until_next_scan(const struct discovery *d)
{
	if (!d->events && d->scan_interval_ns > SCAN_WITHOUT_BPF)
		return SCAN_WITHOUT_BPF;
	return d->scan_interval_ns;
}

/* Logs how many processes were lost because a table or the ring of events was full. Scans find them
 * later. */
static void discovery_report_losses(struct discovery *d)
{
	uint64_t lost = d->overflow + processes_refused(d->processes) +
			(d->events ? exec_events_lost(d->events) : 0);

	if (lost != d->lost)
		log_warn("discovery.late", "processes=%" PRIu64, lost - d->lost);
	d->lost = lost;
}

static void end_scan(struct discovery *d)
{
	processes_sweep(d->processes, d->generation);
	free(d->pids);
	d->pids = NULL;
	if (d->full)
		discovery_report_losses(d);
	loop_timer_set(d->scan_timer, discovery_until_next_scan(d), 0);
	discovery_arm(d);
}

/* Moves the pids of d->first to the front, in their order. */
static void discovery_put_first(struct discovery *d)
{
	uint32_t front = 0;

	for (uint32_t i = 0; i < d->n_first; i++)
		for (uint32_t k = front; k < d->n_pids; k++) {
			pid_t pid = d->pids[k];

			if (pid != d->first[i])
				continue;
			d->pids[k] = d->pids[front];
			d->pids[front++] = pid;
			break;
		}
	free(d->first);
	d->first = NULL;
	d->n_first = 0;
}

static bool discovery_begin_scan(struct discovery *d)
{
	uint64_t now = clock_mono_ns();
	int r;

	r = discovery_list_pids(d->proc_dfd, &d->pids, &d->n_pids);
	if (r < 0 || !d->pids) {
		log_warn("discovery.scan", "error=%s", log_str(strerror(-r)));
		return false;
	}
	discovery_put_first(d);
	d->next_pid = 0;
	d->generation++;
	d->full = !d->full_scan_mono_ns || d->events ||
		  now - d->full_scan_mono_ns >= d->scan_interval_ns;
	if (d->full)
		d->full_scan_mono_ns = now;
	return true;
}

static void discovery_on_scan(void *userdata)
{
	struct discovery *d = userdata;
	int left = ROUND_PROBES_MAX;

	if (!d->pids && !discovery_begin_scan(d)) {
		loop_timer_set(d->scan_timer, discovery_until_next_scan(d), 0);
		return;
	}
	while (d->next_pid < d->n_pids && left) {
		int r = discovery_scan_one(d, d->pids[d->next_pid]);

		if (r < 0) { /* the next answer continues, or this timer */
			loop_timer_set(d->scan_timer, LATER_NS, 0);
			return;
		}
		d->next_pid++;
		left -= r;
	}
	if (d->next_pid == d->n_pids)
		end_scan(d);
	else
		loop_timer_set(d->scan_timer, PORTION_PAUSE_NS, 0);
}

/* A look has ended: continues with the processes that are due, then with the scan. */
static void discovery_go_on(struct discovery *d)
{
	discovery_on_due(d);
	if (d->pids)
		loop_timer_set(d->scan_timer, 0, 0);
}

int discovery_new_at(struct loop *loop, const struct config *config,
		     const struct discovery_ops *ops, void *userdata, int proc_dfd,
		     struct discovery **ret)
{
	CLEANUP(discovery_freep) struct discovery *d = calloc(1, sizeof(*d));
	int r;

	if (!d) {
		fd_close(proc_dfd);
		return -ENOMEM;
	}
	d->loop = loop;
	d->ops = *ops;
	d->userdata = userdata;
	d->proc_dfd = proc_dfd;
	d->scan_interval_ns = config->scan_interval_ns;
	r = processes_new(&d->processes);
	if (r < 0)
		return r;
	r = loop_timer_add(loop, UINT64_MAX, 0, discovery_on_due, d, &d->due_timer);
	if (r < 0)
		return r;
	r = loop_timer_add(loop, 0, 0, discovery_on_scan, d, &d->scan_timer);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(d);
	return 0;
}

int discovery_new(struct loop *loop, const struct config *config, struct look *look,
		  const struct discovery_ops *ops, void *userdata, struct discovery **ret)
{
	static const struct exec_events_ops event_ops = { discovery_on_exec, discovery_on_exit };
	CLEANUP(discovery_freep) struct discovery *d = NULL;
	int proc_dfd, r;

	proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc_dfd < 0)
		return -errno;
	r = discovery_new_at(loop, config, ops, userdata, proc_dfd, &d);
	if (r < 0)
		return r;
	d->look = look;
	/* events before the first scan, so that no process is missed in between */
	if (config->bpf == BPF_OFF)
		strcpy(d->why, "switched off by discovery.bpf");
	else
		r = exec_events_new(loop, &event_ops, d, &d->events, d->why);
	if (r < 0 && config->bpf == BPF_ON) {
		log_err("discovery.bpf", "error=%s", log_str(d->why));
		return r;
	}
	log_info("discovery.start", "source=%s why_not_bpf=%s", d->events ? "bpf" : "scan",
		 log_str(d->why));
	*ret = TAKE_PTR(d);
	return 0;
}

void discovery_look_first(struct discovery *d, pid_t *pids, uint32_t n)
{
	free(d->first);
	d->first = pids;
	d->n_first = pids ? n : 0;
}

struct discovery *discovery_free(struct discovery *d)
{
	if (!d)
		return NULL;
	exec_events_free(d->events);
	loop_timer_free(d->scan_timer);
	loop_timer_free(d->due_timer);
	processes_free(d->processes);
	free(d->pids);
	free(d->first);
	fd_close(d->proc_dfd);
	free(d);
	return NULL;
}

const char *discovery_source(const struct discovery *d, const char **ret_why)
{
	*ret_why = d->why;
	return d->events ? "bpf" : "scan";
}

uint32_t discovery_denied(const struct discovery *d, pid_t *pids, uint32_t max)
{
	return processes_denied(d->processes, pids, max);
}

uint64_t discovery_probes(const struct discovery *d)
{
	return d->probes;
}
