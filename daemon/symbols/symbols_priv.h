/*
 * Inside the symbols room: symbols.c (processes and their files), openings.c (the order in which
 * files are opened), contents.c (one content, however many processes map it, and its table),
 * children.c (the processes that read them, and their cost).
 */
#pragma once

#include <sys/types.h>
#include "daemon/core/loop.h"
#include "daemon/core/tenant.h"
#include "daemon/symbols/symbols.h"
#include "daemon/symbols/table.h"

#define KEY_SIZE	200 /* "<tenant>_<device>-<inode>-...", a file's name */
#define FILE_BUCKETS	64
#define CONTENT_BUCKETS 1024
#define PROCESSES_HASH	256
#define ROOT_FD		3 /* of a child: roots of the container and of the host */
#define HOST_FD		4
#define OPENINGS_MAX	4 /* files that are being opened, each of a different tenant */

enum content_state { WANTED, READING, READY, NONE };

/* Owned by the room while it has objects, or has used CPU time. */
struct tenant {
	struct tenant *next;
	char name[TENANT_SIZE];
	unsigned files, contents, waiting;
	bool reading; /* one of its children has not ended */
	int64_t cpu_ns; /* CPU time that its children may still use */
	uint64_t filled_mono_ns, started_mono_ns; /* cpu_ns; its last child */
	struct file *wanted, **wanted_end; /* files to be opened, in the order of requests */
	bool opening; /* one of its files */
	uint64_t asked_mono_ns, open_from_mono_ns; /* time of its last request; not before */
};

/* A mapped table; equal ones are mapped once. */
struct names {
	struct names *next;
	unsigned refs;
	void *bytes;
	size_t len;
	uint64_t hash; /* of the bytes */
	ino_t ino; /* in the directory of tables */
	struct table table;
	bool looked_at; /* since its pages were last given back */
};

struct content {
	struct content *next;
	struct symbols *owner;
	struct tenant *tenant;
	char key[KEY_SIZE];
	unsigned refs; /* of files */
	enum content_state state;
	int file_fd, root_fd; /* WANTED: the file, and the root of the container it is in; O_PATH */
	char *path; /* there */
	struct child *child; /* READING */
	struct names *names; /* READY */
};

struct file {
	struct file *next; /* in its bucket */
	struct process *process;
	uint32_t hash; /* of the path */
	uint64_t begin, end;
	char *path;
	struct content *content; /* NULL = not opened yet; while the file is opened again, that of
				    the previous mapping */
	struct file *next_wanted, **wanted_at; /* of its tenant; NULL = it is not */
};

struct opening {
	uint64_t ticket; /* 0 = free */
	struct file *file;
	uint64_t begin; /* that was asked for */
};

struct process {
	struct process *next; /* in its bucket */
	struct symbols *owner;
	int pid;
	uint64_t start_time;
	uint64_t ended_mono_ns; /* 0 = it lives */
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

/* symbols.c. The answer for @f, which may be freed: an error, or its file; takes both descriptors;
 * st_dev and the like of @st are its key. */
void file_opened(struct file *f, int result, int file_fd, int root_fd, const struct stat *st);

/* openings.c */
int openings_init(struct symbols *s);
/* Puts it into the queue. */
void file_want(struct symbols *s, struct file *f);
/* Removes it from the queue; cancels an open request. */
void file_unwant(struct symbols *s, struct file *f);

/* contents.c. The content with this key, with a reference; NULL without memory. */
struct content *content_ref(struct symbols *s, struct tenant *t, const char *key);
void content_unref(struct content *c);
/* Its table is on disk already. */
bool content_open(struct content *c);
/* A child has written the table into @fd, the file @temp; false = it is invalid. */
bool content_read(struct content *c, int fd, const char *temp);
void content_forget_input(struct content *c);
/* The name at @offset; @c is READY. */
const char *content_find(struct content *c, uint64_t offset);

/* children.c */
void children_find_program(struct symbols *s);
/* Starts children that may run; to be called again when time has passed. */
void children_start(struct symbols *s);
/* Nobody waits for it any more. */
void child_abandon(struct child *c);
void children_free(struct symbols *s);
/* Sets a new tenant's budget, or adds what has refilled since the last call. */
void tenant_refill(struct tenant *t, uint64_t now_mono_ns);
bool tenant_is_full(const struct tenant *t);
