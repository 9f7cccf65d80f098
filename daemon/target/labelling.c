/* See labelling.h. */
#include "daemon/target/labelling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/label_rules.h"
#include "daemon/discovery/facts.h"
#include "daemon/ground/log.h"
#include "daemon/target/target_priv.h"

/* Copies the tag of an image, "1.2" of "registry:5000/shop:1.2@sha256:..."; "" if there is none. */
static void labelling_tag(const char *image, char *ret, size_t size)
{
	const char *slash = strrchr(image, '/'), *end = strchrnul(image, '@');
	const char *colon = memrchr(image, ':', (size_t)(end - image));

	if (!colon || (slash && colon < slash))
		colon = end - 1;
	snprintf(ret, size, "%.*s", (int)(end - colon - 1), colon + 1);
}

static const char *labelling_first(const char *const *texts, size_t n)
{
	size_t i = 0;

	while (i + 1 < n && !*texts[i])
		i++;
	return texts[i];
}

/* Sets the labels that come from the runtime and the settings, which nobody in the container can
 * influence. */
static void labelling_trusted(const struct jvm *jvm, const struct config *config,
			      struct labels *ret)
{
	const char *slash = strchr(jvm->pod, '/');
	char namespace[LABEL_VALUE_SIZE] = "";

	if (slash)
		snprintf(namespace, sizeof(namespace), "%.*s", (int)(slash - jvm->pod), jvm->pod);
	(void)labels_set(ret, "pod", slash ? slash + 1 : jvm->pod);
	(void)labels_set(ret, "pod_namespace", namespace);
	(void)labels_set(ret, "namespace", namespace);
	(void)labels_set(ret, "container", jvm->container[0] ? jvm->container : jvm->container_id);
	(void)labels_set(ret, "image", jvm->image);
	(void)labels_set(ret, "host", config->host);
	(void)labels_set(ret, "node", config->node);
}

static void labelling_service(const struct jvm *jvm, const struct declared *declared,
			      struct labels *ret)
{
	const char *services[] = { declared->service, jvm->noted_service, declared->application,
				   jvm->container, jvm->name };
	const char *versions[3] = { declared->version, jvm->noted_version };
	char tag[LABEL_VALUE_SIZE];

	labelling_tag(jvm->image, tag, sizeof(tag));
	versions[2] = tag;
	(void)labels_set(ret, "service", labelling_first(services, ARRAY_SIZE(services)));
	(void)labels_set(ret, "version", labelling_first(versions, ARRAY_SIZE(versions)));
	if (declared->namespace[0])
		(void)labels_set(ret, "namespace", declared->namespace);
	(void)labels_set(ret, "environment", declared->environment);
}

/* Does @key match one of the patterns in @list, "team,app.kubernetes.io/..."? */
static bool labelling_fits(const char *list, const char *key)
{
	char word[sizeof(((struct config *)0)->label_pods)];
	size_t len;

	for (const char *p = list; *p; p += len + strspn(p + len, ", ")) {
		len = strcspn(p, ", ");
		snprintf(word, sizeof(word), "%.*s", (int)len, p);
		if (facts_fits(word, key))
			return true;
	}
	return false;
}

/* Adds those labels and annotations of the pod that the settings name, except where a label of that
 * name is already set. */
static void labelling_notes(const struct jvm *jvm, const char *list, struct labels *ret)
{
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];
	const char *text = jvm->notes;
	size_t len;

	while (*list && labels_next_text(&text, key, value))
		if (labelling_fits(list, key) && !labels_find(ret->text, key, &len))
			(void)labels_set(ret, key, value);
}

void labelling_make(const struct jvm *jvm, const struct declared *declared,
		    const struct config *config, struct labels *ret)
{
	*ret = (struct labels){ 0 };
	labelling_trusted(jvm, config, ret);
	labelling_service(jvm, declared, ret);
	labelling_notes(jvm, config->label_pods, ret);
	for (unsigned i = 0; i < config->n_labels; i++)
		(void)labels_set(ret, config->labels[i].key, config->labels[i].value);
	label_rules_apply(config->label_rules, config->n_label_rules, jvm->name, ret);
}

void labelling_renew(struct target *t)
{
	struct targets *table = t->priv->table;
	struct labels labels;
	char *text;

	labelling_make(&t->jvm, &t->priv->facts.declared, table->config, &labels);
	if (t->labels && strcmp(t->labels, labels.text) == 0)
		return;
	text = strdup(labels.text);
	if (!text) /* no memory: the target keeps its old labels */
		return;
	free(t->labels);
	t->labels = text;
	labels_get(text, "service", t->service);
	if (labels.left_out)
		TARGET_LOG(WARNING, t, "target.labels", "pid=%d left_out=%u reason=%s", t->jvm.pid,
			   labels.left_out, log_str("there are too many of them"));
	if (table->ops.on_labels)
		table->ops.on_labels(table->userdata, t);
}
