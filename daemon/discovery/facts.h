/*
 * What decides whether a JVM may be attached to and only its memory and files can tell: its owner's
 * word, which rules its command line and environment fit, who else profiles it, and whether an
 * agent may be in it already. Text of any length becomes a few words of bits where it is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/core/config.h"
#include "daemon/discovery/allowed.h"
#include "daemon/discovery/told.h"
#include "daemon/ground/profilers.h"

struct facts {
	uint64_t rules_id; /* of the rules that the two below are about */
	/* bit N: the condition of rule N holds; what could not be read fits none */
	uint64_t command, environment;
	struct told told; /* what its owner calls it */
	struct allowed allowed; /* and allows, in its environment */
	profilers_set profilers; /* of others, loaded or in its options */
	bool owner_says_no; /* in its environment, wherever there */
	bool has_agent; /* maybe: it has a file open that is called as an agent's pipes are */
};

/* The rules as they lie in a memfd, for who reads the text. */
struct facts_rules {
	uint64_t id;
	uint32_t n;
	struct config_rule list[RULES_MAX];
};
/* A descriptor of one, or -errno. */
int facts_rules_file(const struct config *c, uint64_t id);

/* @pid_dfd: directory of /proc/PID, @rules_fd: facts_rules_file(). 0 or -errno; what cannot be
 * read of the process is no error. */
int facts_read(int pid_dfd, int rules_fd, struct facts *ret);

/* The words of a command line joined by one space, NULL = could not be read; and entries of an
 * environment, each with its NUL. */
struct facts_text {
	const char *command, *environ;
	size_t environ_len;
};
/* Fills in the two of @ret; pure. */
void facts_match(const struct config_rule *rules, unsigned n, const struct facts_text *text,
		 struct facts *ret);
/* @text equals @word, or fits it where that is a pattern. Pure. */
bool facts_fits(const char *word, const char *text);
