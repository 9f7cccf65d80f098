/* See rules.h. */
#include "daemon/target/rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/hash.h"
#include "daemon/ground/mem.h"

#define CONTAINER_ID_MIN 12

static bool rules_container_matches(const char *word, const struct jvm *jvm)
{
	size_t len = strlen(word);

	if (!jvm->container[0] && !jvm->container_id[0])
		return false; /* outside of containers even "*" does not match */
	if (facts_fits(word, jvm->container))
		return true;
	return len >= CONTAINER_ID_MIN && strncmp(jvm->container_id, word, len) == 0;
}

static bool rules_pod_matches(const char *word, const struct jvm *jvm)
{
	const char *slash = strchr(jvm->pod, '/');

	if (!jvm->pod[0])
		return false;
	return facts_fits(word, jvm->pod) || (slash && facts_fits(word, slash + 1));
}

static bool rules_namespace_matches(const char *word, const struct jvm *jvm)
{
	const char *slash = strchr(jvm->pod, '/');
	char namespace[sizeof(jvm->pod)];

	if (!slash)
		return false;
	snprintf(namespace, sizeof(namespace), "%.*s", (int)(slash - jvm->pod), jvm->pod);
	return facts_fits(word, namespace);
}

/* Does @word match any label or annotation of the pod, as "NAME=value"? */
static bool rules_annotation_matches(const char *word, const struct jvm *jvm)
{
	char note[LABEL_KEY_SIZE + LABEL_VALUE_SIZE];
	const char *text = jvm->notes;
	struct label label;

	while (labels_next(&text, &label)) {
		snprintf(note, sizeof(note), "%.*s=%.*s", (int)label.key_len, label.key,
			 (int)label.value_len, label.value);
		if (facts_fits(word, note))
			return true;
	}
	return false;
}

static bool rules_holds(const struct config_rule *r, unsigned index, const struct jvm *jvm,
			const struct facts *f)
{
	if (r->has_uid && (jvm->uid < r->uid_min || jvm->uid > r->uid_max))
		return false;
	if (r->container[0] && !rules_container_matches(r->container, jvm))
		return false;
	if (r->pod[0] && !rules_pod_matches(r->pod, jvm))
		return false;
	if (r->namespace[0] && !rules_namespace_matches(r->namespace, jvm))
		return false;
	if (r->image[0] && (!jvm->image[0] || !facts_fits(r->image, jvm->image)))
		return false;
	if (r->annotation[0] && !rules_annotation_matches(r->annotation, jvm))
		return false;
	if (r->command[0] && !(f->command >> index & 1))
		return false;
	return !r->environment[0] || f->environment >> index & 1;
}

int rules_find(const struct config *c, const struct jvm *jvm, const struct facts *facts)
{
	for (unsigned i = 0; i < c->n_rules; i++)
		if (rules_holds(&c->rules[i], i, jvm, facts))
			return (int)i;
	return -1;
}

uint64_t rules_hash(const struct config *c)
{
	uint64_t hash = HASH_BEGIN ^ c->opt_in;

	for (unsigned i = 0; i < c->n_rules; i++) {
		struct config_rule r = { 0 };

		memcpy(&r, &c->rules[i], sizeof(r));
		r.line = 0; /* a rule that only moves to another line is the same */
		hash = hash_bytes(hash, &r, sizeof(r));
	}
	return hash;
}

/* Writes the rule's first condition as it is in the settings. */
static void rules_describe(const struct config_rule *r, char *buf, size_t size)
{
	const struct {
		const char *name, *value;
	} texts[] = {
		{ "command", r->command },	 { "environment", r->environment },
		{ "container", r->container },	 { "pod", r->pod },
		{ "namespace", r->namespace },	 { "image", r->image },
		{ "annotation", r->annotation },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!*texts[i].value)
			continue;
		snprintf(buf, size, "%s \"%.40s\"", texts[i].name, texts[i].value);
		return;
	}
	snprintf(buf, size, "uid %u", r->uid_min);
}

void rules_explain(const struct config *c, int index, struct fault *ret)
{
	const char *slash = strrchr(c->file, '/');
	char what[80];

	*ret = (struct fault){ .flags = FAULT_PERMANENT };
	if (index < 0) {
		fault_set(ret, EPERM, FAULT_RULE,
			  "targets.mode is opt-in, and neither a rule nor its owner asks for this "
			  "JVM; `kindling attach` profiles it anyway");
		return;
	}
	rules_describe(&c->rules[index], what, sizeof(what));
	fault_set(ret, EPERM, FAULT_RULE, "denied by targets.rules[%d] (%.30s:%u): %s", index,
		  slash ? slash + 1 : c->file, c->rules[index].line, what);
}
