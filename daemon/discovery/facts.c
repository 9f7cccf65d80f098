/* See facts.h. */
#include "daemon/discovery/facts.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/mman.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/owner.h"
#include "daemon/ground/proc.h"

#define COMMAND_MAX (512u * 1024) /* class paths are long */
#define ENVIRON_MAX (1024u * 1024)
/* So many descriptors of a process are searched for an agent's pipes. */
#define FDS_MAX 1024

static_assert(RULES_MAX <= 64, "a bit each");

/* ---- rules ---------------------------------------------------------------------------------- */

static bool facts_is_pattern(const char *word)
{
	return strpbrk(word, "*?[") != NULL;
}

bool facts_fits(const char *word, const char *text)
{
	return facts_is_pattern(word) ? fnmatch(word, text, 0) == 0 : strcmp(word, text) == 0;
}

static bool command_fits(const char *word, const struct facts_text *t)
{
	if (!t->command)
		return false;
	return facts_is_pattern(word) ? fnmatch(word, t->command, 0) == 0
				      : strstr(t->command, word) != NULL;
}

static bool environment_fits(const char *word, const struct facts_text *t)
{
	if (!t->environ)
		return false;
	for (size_t i = 0; i < t->environ_len; i += strlen(t->environ + i) + 1)
		if (facts_fits(word, t->environ + i))
			return true;
	return false;
}

void facts_match(const struct config_rule *rules, unsigned n, const struct facts_text *text,
		 struct facts *ret)
{
	ret->command = ret->environment = 0;
	for (unsigned i = 0; i < n && i < RULES_MAX; i++) {
		if (rules[i].command[0] && command_fits(rules[i].command, text))
			ret->command |= 1ull << i;
		if (rules[i].environment[0] && environment_fits(rules[i].environment, text))
			ret->environment |= 1ull << i;
	}
}

int facts_rules_file(const struct config *c, uint64_t id)
{
	CLEANUP(fd_closep) int fd = memfd_create("kindling-rules", MFD_CLOEXEC);
	CLEANUP(freep) struct facts_rules *rules = calloc(1, sizeof(*rules));

	if (fd < 0 || !rules)
		return -ENOMEM;
	rules->id = id;
	rules->n = c->n_rules;
	memcpy(rules->list, c->rules, c->n_rules * sizeof(rules->list[0]));
	if (write(fd, rules, sizeof(*rules)) != (ssize_t)sizeof(*rules))
		return -ENOMEM;
	return TAKE_FD(fd);
}

/* ---- a process ------------------------------------------------------------------------------ */

static char *facts_read_all(int pid_dfd, const char *name, size_t max, size_t *ret_len)
{
	CLEANUP(freep) char *text = malloc(max);
	ssize_t n = text ? proc_read(pid_dfd, name, text, max) : -ENOMEM;

	*ret_len = n > 0 ? (size_t)n : 0;
	return n < 0 ? NULL : TAKE_PTR(text);
}

static void facts_join(char *command, size_t len)
{
	while (len && command[len - 1] == '\0')
		len--;
	for (size_t i = 0; i < len; i++)
		if (command[i] == '\0')
			command[i] = ' ';
}

static void facts_read_text(int pid_dfd, const struct facts_rules *rules, struct facts *ret)
{
	size_t len, environ_len;
	CLEANUP(freep) char *command = facts_read_all(pid_dfd, "cmdline", COMMAND_MAX, &len);
	CLEANUP(freep)
	char *variables = facts_read_all(pid_dfd, "environ", ENVIRON_MAX, &environ_len);
	const struct facts_text text = { command, variables, environ_len };

	declared_read(command, len, variables, environ_len,
		      &ret->declared); /* before facts_join(): it needs separate words */
	if (variables)
		allowed_read(&ret->allowed, variables, environ_len);
	if (command)
		facts_join(command, len);
	facts_match(rules->list, rules->n, &text, ret);
}

static bool facts_may_have_agent(int pid_dfd)
{
	CLEANUP(fd_closep) int fd = openat(pid_dfd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	char link[256];
	bool found = false;
	int seen;

	if (!dir)
		return false;
	(void)TAKE_FD(fd);
	for (seen = 0; !found && seen < FDS_MAX && (e = readdir(dir)); seen++) {
		/* reads only the link's text; opening the file behind it might block */
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		found = strstr(link, "/kindling/") != NULL;
	}
	closedir(dir);
	return found || seen == FDS_MAX;
}

int facts_read(int pid_dfd, int rules_fd, struct facts *ret)
{
	CLEANUP(freep) struct facts_rules *rules = malloc(sizeof(*rules));
	ssize_t n = rules ? pread(rules_fd, rules, sizeof(*rules), 0) : -1;

	if (n != (ssize_t)sizeof(*rules) || rules->n > RULES_MAX)
		return rules ? -EBADMSG : -ENOMEM;
	*ret = (struct facts){ .rules_id = rules->id };
	ret->owner_says_no = owner_forbids(pid_dfd) > 0;
	facts_read_text(pid_dfd, rules, ret);
	profilers_read_maps(pid_dfd, &ret->profilers);
	profilers_read_options(pid_dfd, &ret->profilers);
	ret->has_agent = facts_may_have_agent(pid_dfd);
	return 0;
}
