/*
 * Gets names and labels of pods and containers from the container runtime's CRI socket, if
 * `names.cri` is set, because files of the host do not have all of them (containerd's files have no
 * labels). A JVM in a container waits here for two short answers before it becomes a target;
 * without an answer it becomes one with what the files contain.
 *
 * The warden sends the questions (warden_ask_names()) and kindling-names reads the answers, so this
 * process never has a connection to the runtime. There is one question at a time. A container that
 * a JVM went on for without an answer is asked about again, while one of its JVMs lives.
 */
#pragma once

#include <stdbool.h>
#include "daemon/core/loop.h"
#include "daemon/discovery/jvm.h"

#define NAMES_WAITING_MAX 256 /* JVMs that wait; further ones go on without names */

struct names;
/* @jvm and @said are borrowed. */
struct names_ops {
	/* a JVM that names_ask() accepted, with or without an answer; may call names_ask() */
	void (*on_jvm)(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns);
	/* the answer for JVMs that have gone on without one: those of the container
	 * @said->container_id; for names_add(), empty if the runtime does not know it */
	void (*on_later)(void *userdata, const struct jvm *said);
	/* Does a JVM of this container live? If not, nothing more is asked about it. */
	bool (*lives)(void *userdata, const char *container_id);
};

/* @program: the path of kindling-names; @path: that of the runtime's socket. Both are copied, and
 * so is @ops. 0 or -errno. */
int names_new(struct loop *loop, const char *program, const char *path, const struct names_ops *ops,
	      void *userdata, struct names **ret);
/* Drops JVMs that still wait. NULL is fine; returns NULL. */
struct names *names_free(struct names *n);
/* true: on_jvm() will be called with @jvm, but not before this returns. false: it is not asked
 * about (no container, a pause after failures, or too many wait), and the caller goes on. */
bool names_ask(struct names *n, const struct jvm *jvm, uint64_t seen_mono_ns);

struct names_status {
	const char *path;
	char error[200]; /* why the last question was not answered; "" = it was */
	unsigned waiting; /* questions that wait now */
	unsigned asking_again; /* containers without an answer, which are asked about again */
	/* JVMs since the start: */
	uint64_t named; /* the runtime knew them */
	uint64_t unknown; /* the runtime did not know them */
	uint64_t unanswered; /* the runtime did not answer, and they went on without it */
	uint64_t answered_later; /* containers, not JVMs: asked about again, and answered */
};
void names_status(const struct names *n, struct names_status *ret);

/* Adds @said, the runtime's answer, to @jvm. What the files contained is kept, and of the owner's
 * limits the stricter ones count. @said is not trusted; its texts must be NUL-terminated. Pure. */
void names_add(struct jvm *jvm, const struct jvm *said);
