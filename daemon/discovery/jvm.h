/*
 * What /proc shows about a process that has libjvm mapped. A hostile process can choose all of this
 * text, so every read is capped, and no link is followed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/discovery/allowed.h"

#define JVM_NOTES_SIZE 2048

struct jvm {
	pid_t pid; /* host pid */
	pid_t ns_pid; /* pid in the innermost pid namespace */
	uint64_t start_time; /* field 22 of /proc/PID/stat, clock ticks since boot */
	uid_t uid;
	gid_t gid;
	char comm[16];
	char name[256]; /* main class or jar, from the command line, UTF-8 checked */
	char jdk[128]; /* "Debian 17.0.15", from the JDK's release file; "" = unknown */
	char libjvm[256]; /* its path in /proc/PID/maps */
	bool libjvm_deleted;
	char libjvm_build[64]; /* "23434240 bytes of 2025-04-15T12:00:00Z", "" if unknown */
	char container_id[65]; /* see container_id_from_cgroup(); "" = in no container */
	char container[128]; /* container name, "" if unknown */
	char pod[256]; /* "namespace/pod", "" if unknown */
	char image[256];
	/* annotations and labels of its container and pod, "name=value\n" as in core/labels.h
	 * (notes.h), and the values derived from them; "" = none */
	char notes[JVM_NOTES_SIZE];
	char noted_service[128];
	char noted_version[64];
	char image_digest[72]; /* "sha256:" and 64 hex digits; "" = unknown */
	struct allowed allowed; /* limits that its owner set in the notes */
};

/* Is a process a JVM that can be attached to? */
enum jvm_check {
	JVM_NO, /* no libjvm mapped */
	JVM_YOUNG, /* libjvm mapped, SIGQUIT not caught yet: look again soon */
	JVM_READY,
};

/*
 * Looks at one process. @proc_dfd: directory of /proc (tests pass a made-up tree). @ret is filled
 * in unless the result is JVM_NO. Returns an enum jvm_check, or -errno (-ESRCH: the process has
 * ended).
 */
int jvm_probe(int proc_dfd, pid_t pid, struct jvm *ret);
/* Terminates every text in @jvm, which another process filled in. */
void jvm_end_texts(struct jvm *jvm);
