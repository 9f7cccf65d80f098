/*
 * Asks kindling-look for facts about targets (discovery/look.h), because reading the memory of a
 * process may block forever. The facts are kept, so that a request for an attach is answered at
 * once; an environment does not change. A target is examined again before every attempt, when the
 * rules have changed, and now and then while it streams, because another profiler may be loaded at
 * any time.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "daemon/ground/log.h"
#include "daemon/target/rules.h"

/* A new descriptor of the file with the current rules, for kindling-look. The caller closes it. */
static int ask_rules_file(struct targets *table)
{
	uint64_t id = rules_hash(table->config);
	int fd;

	if (table->rules_fd < 0 || table->rules_id != id) {
		fd_close(table->rules_fd);
		table->rules_fd = facts_rules_file(table->config, id);
		table->rules_id = id;
	}
	fd = table->rules_fd < 0 ? -1 : fcntl(table->rules_fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -ENOMEM : fd;
}

const struct facts *facts_of(const struct target *t)
{
	static const struct facts unknown;
	const struct target_priv *p = t->priv;

	return p->facts.rules_id == rules_hash(p->table->config) ? &p->facts : &unknown;
}

void facts_explain(int result, struct fault *ret)
{
	*ret = (struct fault){ 0 };
	if (result == -ETIMEDOUT)
		fault_set(ret, ETIMEDOUT, FAULT_DEADLINE,
			  "the process does not answer: a read of its memory has not ended");
	else if (result == -EBUSY)
		fault_set(ret, EBUSY, FAULT_DEADLINE,
			  "processes of this container or user do not answer: reads of them have "
			  "not ended");
	else
		fault_set(ret, -result, FAULT_DEADLINE, "read the process: ");
}

static void ask_conclude(struct target *t, int result)
{
	unsigned wanted = TAKE(t->priv->facts_for, 0);

	if (wanted & FACTS_FOR_ATTEMPT) {
		t->priv->looking = false;
		target_begin_on_facts(t, result);
	} else if (wanted & FACTS_FOR_SETTINGS) {
		settings_on_facts(t, result);
	} else if (result >= 0) {
		other_profilers_on_facts(t);
	}
}

static void target_ask(struct target *t);

static void ask_on_facts(void *userdata, const struct look_answer *a, int fds[LOOK_FDS])
{
	struct target *t = userdata;

	(void)fds;
	t->priv->facts_question = NULL;
	if (a->result >= 0) {
		t->priv->facts = a->facts;
		t->profilers |= a->facts.profilers;
		labelling_renew(t);
		if (a->facts.rules_id != rules_hash(t->priv->table->config)) {
			target_ask(t); /* the rules have changed meanwhile */
			return;
		}
	}
	ask_conclude(t, a->result);
}

static void target_ask(struct target *t)
{
	struct target_priv *p = t->priv;
	const struct look_question q = { .kind = LOOK_FACTS,
					 .pid = t->jvm.pid,
					 .start_time = t->jvm.start_time };
	int fd = ask_rules_file(p->table), r = fd;

	if (fd >= 0)
		r = look_ask(p->table->look, &q, tenant_number(p->tenant->name), fd, ask_on_facts,
			     t, &p->facts_question);
	if (r < 0)
		ask_conclude(t, r);
}

void facts_ask(struct target *t, enum facts_for what)
{
	struct target_priv *p = t->priv;

	p->facts_for |= what;
	if (what == FACTS_FOR_ATTEMPT) {
		p->queued = false; /* no attempt may begin meanwhile */
		p->looking = true;
	}
	if (!p->facts_question)
		target_ask(t);
}

void facts_cancel(struct target *t)
{
	t->priv->facts_question = look_cancel(t->priv->facts_question);
	t->priv->facts_for = 0;
}
