/*
 * Shared by the files of the symbols room: symbols.c (processes and their files), openings.c (the
 * order in which files are opened), contents.c (contents, each of which many processes may map, and
 * their tables), children.c (the processes that read them, and what these cost).
 */
#pragma once

#include <sys/types.h>
#include "daemon/core/loop.h"
#include "daemon/core/tenant.h"
#include "daemon/symbols/symbols.h"
#include "daemon/symbols/table.h"

#define KEY_SIZE	200 /* "<tenant>_<device>-<inode>-...", the name of a table's file */
#define FILE_BUCKETS	64
#define CONTENT_BUCKETS 1024
#define PROCESSES_HASH	256
#define ROOT_FD		3 /* a child's descriptors of the roots of the container and of the host */
#define HOST_FD		4
#define OPENINGS_MAX	4 /* files being opened, each for another tenant */

enum content_state { WANTED, READING, READY, NONE };

/* Exists while a process, or CPU time that it has used, belongs to it. */
struct tenant {
	struct tenant *next;
	char name[TENANT_SIZE];
	unsigned processes, files, contents, waiting; /* that point to it */
	bool reading; /* its child has not ended */
	int64_t cpu_ns; /* CPU time that its children may still use */
	uint64_t filled_mono_ns,
		started_mono_ns; /* when cpu_ns was last refilled; when its last child began */
	struct file *wanted, **wanted_end; /* queue of files to be opened */
	bool opening; /* one of its files is being opened */
	uint64_t asked_mono_ns,
		open_from_mono_ns; /* when its last file was asked for; the next one not before */
};

/* A mapped table; tables with equal bytes are mapped once. */
struct names {
	struct names *next;
	unsigned refs;
	void *bytes;
	size_t len;
	uint64_t hash; /* of the bytes */
	ino_t ino; /* of its file */
	struct symbol_table table;
	bool looked_at; /* its pages were used since they were last dropped */
};

struct content {
	struct content *next;
	struct symbols *owner;
	struct tenant *tenant;
	char key[KEY_SIZE];
	unsigned refs; /* by files */
	enum content_state state;
	int file_fd,
		root_fd; /* WANTED: the file, and its container's root directory; both O_PATH */
	char *path; /* of the file below root_fd */
	struct child *child; /* while READING */
	struct names *names; /* if READY */
};

struct file {
	struct file *next; /* the next one in its bucket */
	struct process *process;
	uint32_t hash; /* of the path */
	uint64_t begin, end;
	char *path;
	struct content *content; /* NULL = not opened yet; while it is opened again, that of the
				    mapping before */
	struct file *next_wanted,
		**wanted_at; /* in the tenant's queue; wanted_at NULL = it is not */
};

struct opening {
	uint64_t ticket; /* 0 = free */
	struct file *file;
	uint64_t begin; /* of the mapping that was asked for */
};

struct process {
	struct process *next; /* the next one in its bucket */
	struct symbols *owner;
	int pid;
	uint64_t start_time;
	uint64_t ended_mono_ns; /* 0 = it is alive */
	struct tenant *tenant;
	struct file *files[FILE_BUCKETS]; /* by path */
	unsigned n_files;
};

struct symbols {
	struct loop *loop;
	struct loop_timer *second, *open_timer;
	const struct symbols_opener *opener;
	void *opener_userdata;
	struct opening openings[OPENINGS_MAX];
	uint64_t last_ticket;
	int dfd, host_root_fd;
	uint64_t max_bytes;
	char program[256];
	struct process *processes[PROCESSES_HASH]; /* by pid */
	struct tenant *tenants;
	struct content *contents[CONTENT_BUCKETS]; /* by key */
	struct names *names;
	struct child *children;
	unsigned n_processes, waiting, reading, seconds;
	struct symbols_counts counts;
};

/* symbols.c: the answer for @f, which may be freed: an error, or its file. Takes both
 * descriptors. @st makes the key of its content. */
void file_opened(struct file *f, int result, int file_fd, int root_fd, const struct stat *st);

/* openings.c */
int openings_init(struct symbols *s);
/* Puts it into the tenant's queue. */
void file_want(struct symbols *s, struct file *f);
/* Takes it out of the queue; cancels an opening. */
void file_unwant(struct symbols *s, struct file *f);

/* contents.c: the content with this key, with a reference; NULL without memory. */
struct content *content_ref(struct symbols *s, struct tenant *t, const char *key);
void content_unref(struct content *c);
/* Is there a table for it on disk? Then it is mapped. */
bool content_open(struct content *c);
/* A child has written a table into @fd, which is the file @temp. false = it is invalid. */
bool content_read(struct content *c, int fd, const char *temp);
void content_forget_input(struct content *c);
/* The name at @offset; only if @c is READY. */
const char *content_find(struct content *c, uint64_t offset);

/* children.c */
void children_find_program(struct symbols *s);
/* Starts children that may start; to be called again as time passes. */
void children_start(struct symbols *s);
/* Kills the child, whose result is not needed any more. */
void child_abandon(struct child *c);
void children_free(struct symbols *s);
/* Sets a new tenant's budget, or adds what has refilled since the last call. */
void tenant_refill(struct tenant *t, uint64_t now_mono_ns);
bool tenant_is_full(const struct tenant *t);
