/* Loads and attaches the programs of offcpu.bpf.c, and fills in the classes of system calls. */
#include "daemon/bpf/offcpu_priv.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/bpf/bpf_priv.h"
#include "offcpu.skel.h"

/* ---- system calls ---------------------------------------------------------------------------- */

static const short futexes[] = {
#ifdef SYS_futex_wait
	SYS_futex_wait,	 SYS_futex_wake, SYS_futex_requeue,
#endif
#ifdef SYS_futex_waitv
	SYS_futex_waitv,
#endif
	SYS_futex,
};
static const short sleeps[] = { SYS_nanosleep, SYS_clock_nanosleep };
static const short polls[] = {
#ifdef SYS_poll
	SYS_poll,	  SYS_select,	SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
#endif
	SYS_ppoll,	  SYS_pselect6, SYS_epoll_pwait,
};
static const short sockets[] = {
	SYS_recvfrom, SYS_recvmsg,  SYS_recvmmsg, SYS_sendto,
	SYS_sendmsg,  SYS_sendmmsg, SYS_shutdown,
};
static const short accepts[] = { SYS_accept, SYS_accept4 };
static const short connects[] = { SYS_connect };
static const short files[] = {
#ifdef SYS_open
	SYS_open,	SYS_stat,      SYS_lstat,	    SYS_access,	   SYS_rename,
	SYS_mkdir,	SYS_rmdir,     SYS_creat,	    SYS_link,	   SYS_unlink,
	SYS_symlink,	SYS_readlink,  SYS_chmod,	    SYS_chown,	   SYS_getdents,
#endif
	SYS_openat,	SYS_openat2,   SYS_newfstatat,	    SYS_fstat,	   SYS_statx,
	SYS_faccessat,	SYS_renameat,  SYS_renameat2,	    SYS_mkdirat,   SYS_unlinkat,
	SYS_linkat,	SYS_symlinkat, SYS_readlinkat,	    SYS_fchmodat,  SYS_fchownat,
	SYS_getdents64, SYS_truncate,  SYS_ftruncate,	    SYS_fallocate, SYS_flock,
	SYS_fcntl,	SYS_close,     SYS_copy_file_range, SYS_readahead, SYS_fadvise64,
	SYS_statfs,	SYS_fstatfs,   SYS_utimensat,
};
static const short fsyncs[] = {
	SYS_fsync, SYS_fdatasync, SYS_msync, SYS_sync_file_range, SYS_sync, SYS_syncfs,
};
static const short by_descriptor[] = {
	SYS_read,     SYS_write,  SYS_readv,   SYS_writev,   SYS_pread64,
	SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2,  SYS_pwritev2,
	SYS_sendfile, SYS_splice, SYS_tee,     SYS_vmsplice,
};

static const struct {
	const short *calls;
	size_t n;
	__u8 value;
} classes[] = {
#define CLASS(calls, value)                     \
	{                                       \
		calls, ARRAY_SIZE(calls), value \
	}
	CLASS(futexes, OFFCPU_FUTEX + 1),     CLASS(sleeps, OFFCPU_SLEEP + 1),
	CLASS(polls, OFFCPU_POLL + 1),	      CLASS(sockets, OFFCPU_SOCKET + 1),
	CLASS(accepts, OFFCPU_ACCEPT + 1),    CLASS(connects, OFFCPU_CONNECT + 1),
	CLASS(files, OFFCPU_FILE + 1),	      CLASS(fsyncs, OFFCPU_FSYNC + 1),
	CLASS(by_descriptor, OFFCPU_CALL_FD),
};

static void offcpu_fill_classes(struct offcpu_bpf *bpf)
{
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		for (size_t n = 0; n < classes[i].n; n++)
			if (classes[i].calls[n] < OFFCPU_CALLS)
				bpf->rodata->class_of_call[classes[i].calls[n]] = classes[i].value;
}

/* ---- loading --------------------------------------------------------------------------------- */

static int offcpu_share(struct host_engine *host, struct offcpu_bpf *bpf)
{
	struct host_engine_maps maps;
	int r;

	host_engine_maps(host, &maps);
	r = bpf_map__reuse_fd(bpf->maps.targets, maps.targets);
	if (r == 0)
		r = bpf_map__reuse_fd(bpf->maps.counts, maps.counts);
	if (r == 0 && maps.slots >= 0)
		r = bpf_map__reuse_fd(bpf->maps.slots, maps.slots);
	if (r == 0 && maps.stays >= 0)
		r = bpf_map__reuse_fd(bpf->maps.stays, maps.stays);
	return r;
}

enum offcpu_way offcpu_best_way(const struct host_engine *host)
{
	struct btf *btf;
	bool has_value;

	if (host_engine_puts_off(host))
		return OFFCPU_BY_TASK_WORK;
	btf = btf__load_vmlinux_btf();
	has_value = btf && btf__find_by_name_kind(btf, "bpf_send_signal_task", BTF_KIND_FUNC) > 0;
	btf__free(btf);
	return has_value ? OFFCPU_BY_RSEQ : OFFCPU_BY_OWN_SIGNAL;
}

/* Chooses among the programs of which a kernel needs one or the other. */
static void offcpu_choose(struct offcpu_bpf *bpf, enum offcpu_way way, bool syscall_exits)
{
	bool by_task_work = way == OFFCPU_BY_TASK_WORK;

	bpf_program__set_autoload(bpf->progs.on_switch_put_off, by_task_work);
	bpf_program__set_autoload(bpf->progs.on_switch_rseq, !by_task_work);
	bpf_program__set_autoload(bpf->progs.on_rseq, !by_task_work);
	bpf->rodata->has_syscall_exits = !by_task_work && syscall_exits;
	bpf_program__set_autoload(bpf->progs.on_syscall_exit, bpf->rodata->has_syscall_exits);
}

/* The table of threads has a slot for each MiB of the host's memory. */
static int offcpu_size_table(struct offcpu_programs *p)
{
	uint64_t mib = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
	uint32_t n = OFFCPU_THREADS_MIN;

	while (n < OFFCPU_THREADS_MAX && n < mib)
		n *= 2;
	p->n_threads = n;
	p->bpf->rodata->threads_mask = n - 1;
	p->bpf->rodata->threads_shift = (uint32_t)__builtin_clz(n - 1);
	return bpf_map__set_max_entries(p->bpf->maps.threads, n);
}

static int offcpu_open(struct host_engine *host, enum offcpu_way way, struct offcpu_programs *p)
{
	bool by_task_work = way == OFFCPU_BY_TASK_WORK;
	struct host_engine_maps maps;
	int r;

	host_engine_maps(host, &maps);
	if (way == OFFCPU_BY_OWN_SIGNAL)
		p->bpf = offcpu_linux5_open();
	else
		p->bpf = maps.linux7 ? offcpu_linux7_open() : offcpu_bpf__open();
	if (!p->bpf)
		return -errno;
	offcpu_fill_classes(p->bpf);
	offcpu_choose(p->bpf, way, p->syscall_exits);
	bpf_map__set_autocreate(p->bpf->maps.slots, by_task_work);
	bpf_map__set_autocreate(p->bpf->maps.stays, !by_task_work);
	r = offcpu_size_table(p);
	return r < 0 ? r : offcpu_share(host, p->bpf);
}

static void *offcpu_map(const struct bpf_map *map)
{
	size_t size = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? NULL : at;
}

static void offcpu_unmap(void *at, const struct bpf_map *map)
{
	if (at)
		(void)munmap(at, (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map));
}

static int offcpu_refuse(int error, const char *step, char *why)
{
	/* EACCES: the verifier, as the host engine was loaded with the same rights */
	if (error == EINVAL || error == EACCES || error == ESRCH || error == ENOTSUP) {
		snprintf(why, OFFCPU_ENGINE_WHY_MAX,
			 "%s: this kernel refuses it; Linux 5.15 is needed", step);
		return -error;
	}
	return bpf_refuse(error, step, why, OFFCPU_ENGINE_WHY_MAX);
}

/* @finder: with the program that adds the threads of new targets. */
static int offcpu_open_and_load(struct host_engine *host, enum offcpu_way way,
				struct offcpu_programs *p, bool finder)
{
	int r;

	offcpu_bpf__destroy(p->bpf);
	r = offcpu_open(host, way, p);
	if (r < 0)
		return r;
	bpf_program__set_autoload(p->bpf->progs.on_thread_found, finder);
	r = offcpu_bpf__load(p->bpf);
	if (r < 0 || !finder)
		return r;
	p->finder = bpf_link_create(bpf_program__fd(p->bpf->progs.on_thread_found), 0,
				    BPF_TRACE_ITER, NULL);
	return p->finder < 0 ? p->finder : 0;
}

int offcpu_load(struct host_engine *host, enum offcpu_way way, struct offcpu_programs *p, char *why)
{
	int r;

	p->finder = -1;
	for (int i = 0; i < OFFCPU_PROGRAMS; i++)
		p->attached[i] = -1;
	r = offcpu_open_and_load(host, way, p, true);
	/* nobody is refused times off the CPU because of one program that only adds to them */
	if (r < 0)
		r = offcpu_open_and_load(host, way, p, false);
	if (r < 0)
		return offcpu_refuse(-r, "load BPF program for off-CPU time", why);
	p->threads = offcpu_map(p->bpf->maps.threads);
	p->targets = offcpu_map(p->bpf->maps.off_targets);
	p->tenants = offcpu_map(p->bpf->maps.tenants);
	if (!p->threads || !p->targets || !p->tenants)
		return offcpu_refuse(errno, "map a BPF table", why);
	/* attaches and detaches once, so that a refusal is known now and not when the first target
	 * comes */
	r = offcpu_attach(p);
	offcpu_detach(p);
	return r < 0 ? offcpu_refuse(-r, "attach BPF program for off-CPU time", why) : 0;
}

void offcpu_unload(struct offcpu_programs *p)
{
	if (!p->bpf)
		return;
	offcpu_detach(p);
	if (p->finder >= 0)
		(void)close(p->finder);
	offcpu_unmap(p->threads, p->bpf->maps.threads);
	offcpu_unmap(p->targets, p->bpf->maps.off_targets);
	offcpu_unmap(p->tenants, p->bpf->maps.tenants);
	offcpu_bpf__destroy(p->bpf);
	p->bpf = NULL;
}

/* ---- attaching ------------------------------------------------------------------------------- */

#define WAKERS_AT 2 /* index of on_waking below */

int offcpu_attach(struct offcpu_programs *p)
{
	const struct bpf_program *all[OFFCPU_PROGRAMS] = {
		/* programs for ends come first, so that no ended thread stays in the table */
		p->bpf->progs.on_thread_exit,  p->bpf->progs.on_new_program,
		p->bpf->progs.on_waking,       p->bpf->progs.on_rseq,
		p->bpf->progs.on_syscall_exit, p->bpf->progs.on_switch_put_off,
	};
	int r = 0;

	if (!bpf_program__autoload(p->bpf->progs.on_switch_put_off))
		all[OFFCPU_PROGRAMS - 1] = p->bpf->progs.on_switch_rseq;
	for (int i = 0; i < OFFCPU_PROGRAMS && r == 0; i++) {
		if (p->attached[i] >= 0 || !bpf_program__autoload(all[i]) ||
		    (p->no_wakers && i == WAKERS_AT))
			continue;
		p->attached[i] = bpf_raw_tracepoint_open(NULL, bpf_program__fd(all[i]));
		r = p->attached[i] < 0 ? p->attached[i] : 0;
	}
	if (r < 0)
		offcpu_detach(p);
	return r;
}

void offcpu_detach(struct offcpu_programs *p)
{
	for (int i = OFFCPU_PROGRAMS - 1; i >= 0; i--) {
		if (p->attached[i] >= 0)
			(void)close(p->attached[i]);
		p->attached[i] = -1;
	}
}

void offcpu_detach_wakers(struct offcpu_programs *p)
{
	if (p->attached[WAKERS_AT] >= 0)
		(void)close(p->attached[WAKERS_AT]);
	p->attached[WAKERS_AT] = -1;
}

void offcpu_threads_add(const struct offcpu_programs *p)
{
	int threads = p->finder >= 0 ? bpf_iter_create(p->finder) : -1;
	char nothing[64];

	if (threads < 0)
		return;
	/* the program writes to the table of threads, and nothing to the reader */
	while (read(threads, nothing, sizeof(nothing)) > 0)
		;
	(void)close(threads);
}

void offcpu_mark(struct offcpu_programs *p, pid_t pid, bool is_target)
{
	uint64_t bit = 1ULL << ((unsigned)pid & 63);
	__u64 *word;

	if (pid <= 0 || pid >= OFFCPU_PIDS)
		return;
	word = &p->bpf->bss->is_target[(unsigned)pid >> 6];
	if (is_target)
		__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
}
