/*
 * Inside the symbols room: symbols.c (processes and their files), contents.c (one content, however
 * many processes map it, and its table), children.c (who reads them, and what that may cost).
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

enum content_state { WANTED, READING, READY, NONE };

/* Owned by the room for as long as something is its, or it has used CPU time. */
struct tenant {
	struct tenant *next;
	char name[TENANT_SIZE];
	unsigned files, contents, waiting;
	bool reading; /* a child of its has not ended */
	int64_t cpu_ns; /* that its children may still use */
	uint64_t filled_mono_ns, started_mono_ns; /* cpu_ns; its last child */
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
};

struct content {
	struct content *next;
	struct symbols *owner;
	struct tenant *tenant;
	char key[KEY_SIZE];
	unsigned refs; /* of files */
	enum content_state state;
	int file_fd, root_fd; /* WANTED: the file, and the root of the container it is in */
	char *path; /* there */
	struct child *child; /* READING */
	struct names *names; /* READY */
};

struct file {
	struct file *next; /* in its bucket */
	uint32_t hash; /* of the path */
	uint64_t begin;
	char *path;
	struct content *content;
};

struct process {
	struct process *next; /* in its bucket */
	int pid;
	uint64_t start_time;
	uint64_t ended_mono_ns; /* 0 = it lives */
	struct tenant *tenant;
	struct file *files[FILE_BUCKETS]; /* by path */
	unsigned n_files;
};

struct symbols {
	struct loop *loop;
	struct loop_timer *second;
	int dfd;
	uint64_t max_bytes;
	char program[256];
	struct process *processes[PROCESSES_HASH]; /* by pid */
	struct tenant *tenants;
	struct content *contents[CONTENT_BUCKETS]; /* by key */
	struct names *names;
	struct child *children;
	unsigned n_processes, waiting, reading;
	struct symbols_counts counts;
};

/* contents.c. The content with this key, one reference more; NULL without memory. */
struct content *content_ref(struct symbols *s, struct tenant *t, const char *key);
void content_unref(struct content *c);
/* Its table lies on disk already. */
bool content_open(struct content *c);
/* A child has written the table into @fd, the file @temp; false = there is none. */
bool content_read(struct content *c, int fd, const char *temp);
void content_forget_input(struct content *c);

/* children.c */
void children_find_program(struct symbols *s);
/* Start those that may run; call again when time has passed. */
void children_start(struct symbols *s);
/* Nobody waits for it any more. */
void child_abandon(struct child *c);
void children_free(struct symbols *s);
/* A new tenant's budget, and what has passed since it was filled last. */
void tenant_refill(struct tenant *t, uint64_t now_mono_ns);
bool tenant_is_full(const struct tenant *t);
