/*
 * The facts that decide whether a JVM may be attached to and that only its memory and files
 * contain: its owner's limits, the rules that match its command line and environment, other
 * profilers, and whether an agent may be loaded already. Text of any length is reduced to a few
 * bits where it is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/core/config.h"
#include "daemon/discovery/allowed.h"
#include "daemon/discovery/declared.h"
#include "daemon/ground/profilers.h"

struct facts {
	uint64_t rules_id; /* of the rules that the two masks below are about */
	/* bit N: the condition of rule N matches; data that cannot be read matches nothing */
	uint64_t command, environment;
	struct declared declared; /* the names that the owner gave it */
	struct allowed allowed; /* the owner's limits in its environment */
	profilers_set profilers; /* other profilers, loaded or in its options */
	bool owner_says_no; /* KINDLING_TEST in its environment, anywhere */
	bool has_agent; /* maybe: an open file has the name of an agent's pipe */
};

/* The rules, serialised in a memfd for the process that reads the text. */
struct facts_rules {
	uint64_t id;
	uint32_t n;
	struct config_rule list[RULES_MAX];
};
/* A descriptor of such a memfd, or -errno. */
int facts_rules_file(const struct config *c, uint64_t id);

/* @pid_dfd: directory of /proc/PID, @rules_fd: facts_rules_file(). 0 or -errno; parts of the
 * process that cannot be read are not an error. */
int facts_read(int pid_dfd, int rules_fd, struct facts *ret);

/* The words of a command line joined by one space, NULL = it could not be read; and the entries of
 * an environment, each with its NUL. */
struct facts_text {
	const char *command, *environ;
	size_t environ_len;
};
/* Fills in the two masks of @ret; pure. */
void facts_match(const struct config_rule *rules, unsigned n, const struct facts_text *text,
		 struct facts *ret);
/* @text equals @word, or matches it if it is a pattern. Pure. */
bool facts_fits(const char *word, const char *text);
