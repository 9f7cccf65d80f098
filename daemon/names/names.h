/*
 * Names of pods and containers from the container runtime, by CRI's socket, where `names.cri` is
 * set: files of the host do not have all of them (containerd's have no labels). A JVM in a
 * container waits here for two short answers before it becomes a target; without an answer it goes
 * on with what the files say.
 *
 * The warden puts the questions (warden_ask_names()) and kindling-names reads the answers, so this
 * process never has the runtime's connection. One question is under way at a time.
 */
#pragma once

#include <stdbool.h>
#include "daemon/core/loop.h"
#include "daemon/discovery/jvm.h"

#define NAMES_WAITING_MAX 256 /* JVMs; the others go on without names */

struct names;
/* @jvm is borrowed. May ask again. */
typedef void names_fn(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns);

/* @program: kindling-names; @path: of the socket. Both are copied. 0 or -errno. */
int names_new(struct loop *loop, const char *program, const char *path, names_fn *fn,
	      void *userdata, struct names **ret);
/* JVMs that still wait are forgotten. NULL is fine; returns NULL. */
struct names *names_free(struct names *n);
/* true: @jvm comes back by names_fn, never from within this call. false: nobody asks about it. */
bool names_ask(struct names *n, const struct jvm *jvm, uint64_t seen_mono_ns);

struct names_status {
	const char *path;
	char error[200]; /* why the last question had no answer, "" = it had one */
	unsigned waiting; /* JVMs */
	uint64_t named; /* JVMs that the runtime knew, since the start, */
	uint64_t unknown; /* that it did not know, */
	uint64_t unanswered; /* and that went on without an answer */
};
void names_status(const struct names *n, struct names_status *ret);

/* Adds what the runtime said of a container to what files said: those have precedence, and of the
 * owner's limits the stricter ones. @said may be anything with its texts ended. Pure. */
void names_add(struct jvm *jvm, const struct jvm *said);
