/*
 * The facts in a JVM's memory and files that decide whether it may be attached to: its owner's
 * limits, the rules that match its command line and environment, other profilers, and whether an
 * agent may be loaded already. The process that reads the text (kindling-look) reduces it to these
 * few fields.
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
	uint64_t rules_id; /* rules_hash() of the rules for which the masks below were made */
	/* bit N: this condition of rule N matches; data that cannot be read matches nothing */
	uint64_t command, environment;
	struct declared declared; /* the names that the owner gave it */
	struct allowed allowed; /* the owner's limits in its environment */
	profilers_set profilers; /* other profilers, loaded or in its options */
	bool owner_says_no; /* KINDLING_DISABLE is set in its environment */
	bool has_agent; /* there may be an agent: an open file has the name of its pipe */
};

/* The rules in a memfd, for the process that reads the text. */
struct facts_rules {
	uint64_t id;
	uint32_t n;
	struct config_rule list[RULES_MAX];
};
/* Makes such a memfd. Returns a descriptor, which the caller owns, or -errno. */
int facts_rules_file(const struct config *c, uint64_t id);

/* Reads the facts of a process. @pid_dfd: directory of /proc/PID; @rules_fd: from
 * facts_rules_file(), borrowed. 0 or -errno; parts that cannot be read are no error. */
int facts_read(int pid_dfd, int rules_fd, struct facts *ret);

/* A command line, whose words are joined by one space (NULL = it could not be read), and the
 * entries of an environment, each with its NUL. */
struct facts_text {
	const char *command, *environ;
	size_t environ_len;
};
/* Fills in the masks command and environment of @ret. Pure. */
void facts_match(const struct config_rule *rules, unsigned n, const struct facts_text *text,
		 struct facts *ret);
/* Does @text equal @word, or match it if that is a pattern with one of *?[ ? Pure. */
bool facts_fits(const char *word, const char *text);
