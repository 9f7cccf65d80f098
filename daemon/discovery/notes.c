/* See notes.h: parses the content of the files. */
#include "daemon/discovery/notes.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"

static void notes_json_freep(cJSON **json)
{
	cJSON_Delete(*json);
}

static const char *notes_text_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Is it a note that is useful only to the program that wrote it? */
static bool notes_is_internal(const char *key)
{
	static const char *const beginnings[] = {
		"io.kubernetes.",
		"io.container.",
		"io.containers.",
		"io.podman.",
		"org.opencontainers.",
		"org.systemd.",
		"kubectl.kubernetes.io/",
		"kubernetes.io/config.",
		"annotation.io.kubernetes.",
	};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (strncmp(key, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

void notes_add(struct notes *n, const char *key, const char *value)
{
	static const char prefix[] = ALLOWED_PREFIX;
	char as[64];
	size_t len;

	if (strncmp(key, prefix, strlen(prefix)) == 0) {
		snprintf(as, sizeof(as), "%.60s: ", key);
		allowed_set_value(&n->allowed, key + strlen(prefix), value, as);
	}
	if (notes_is_internal(key) || strlen(value) >= LABEL_VALUE_SIZE ||
	    !labels_key_is_valid(key) || labels_find(n->list.text, key, &len))
		return;
	if (n->list.len + strlen(key) + strlen(value) + 3 <= JVM_NOTES_SIZE)
		(void)labels_set(&n->list, key, value);
}

static void notes_add_object(struct notes *n, const cJSON *object, const char *skip)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, object)
	{
		const char *key = item->string;

		if (!key || !cJSON_IsString(item))
			continue;
		if (skip && strncmp(key, skip, strlen(skip)) == 0)
			key += strlen(skip);
		notes_add(n, key, item->valuestring);
	}
}

/* Adds the notes of a JSON object that is inside a string, which is CRI-O's format. */
static void notes_add_text(struct notes *n, const char *text)
{
	CLEANUP(notes_json_freep) cJSON *json = text ? cJSON_Parse(text) : NULL;

	notes_add_object(n, json, NULL);
}

/* Copies an id or uid if it consists of hex digits and -, because it becomes part of a path. */
static void notes_copy_id(char *ret, size_t size, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len && len < size && strspn(text, "0123456789abcdef-") == len)
		memcpy(ret, text, len + 1);
}

void notes_parse_bundle(struct notes *n, const char *text, size_t len)
{
	CLEANUP(notes_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *notes = cJSON_GetObjectItemCaseSensitive(json, "annotations");

	notes_copy_id(n->pod_uid, sizeof(n->pod_uid),
		      notes_text_of(notes, "io.kubernetes.cri.sandbox-uid"));
	notes_copy_id(n->pod_uid, sizeof(n->pod_uid),
		      notes_text_of(notes, "io.kubernetes.pod.uid"));
	notes_copy_id(n->sandbox, sizeof(n->sandbox),
		      notes_text_of(notes, "io.kubernetes.cri-o.SandboxID"));
	notes_add_text(n, notes_text_of(notes, "io.kubernetes.cri-o.Labels"));
	notes_add_text(n, notes_text_of(notes, "io.kubernetes.cri-o.Annotations"));
	notes_add_object(n, notes, NULL);
}

void notes_parse_docker(struct notes *n, const char *text, size_t len)
{
	CLEANUP(notes_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(json, "Config"), "Labels");

	notes_copy_id(n->pod_uid, sizeof(n->pod_uid),
		      notes_text_of(labels, "io.kubernetes.pod.uid"));
	notes_copy_id(n->sandbox, sizeof(n->sandbox),
		      notes_text_of(labels, "io.kubernetes.sandbox.id"));
	notes_add_object(n, labels, "annotation.");
}

/* ---- the downward API ---------------------------------------------------------------------- */

/* Reads a quoted value. Values with longer escapes, such as \u00e9 or \x00, are left out: valid
 * values need none. false = it is left out, or the line is not complete. */
static bool notes_unquote(const char **at, char ret[LABEL_VALUE_SIZE])
{
	const char *p = *at;
	size_t n = 0;

	for (; *p && *p != '"' && *p != '\n'; p++) {
		char c = *p;

		if (c == '\\') {
			c = *++p;
			if (!c || !strchr("\\\"nt", c))
				return false;
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		if (n + 1 >= LABEL_VALUE_SIZE)
			return false;
		ret[n++] = c;
	}
	ret[n] = '\0';
	*at = p;
	return *p == '"';
}

void notes_parse_downward(struct notes *n, const char *text, size_t len)
{
	const char *end = text + len;
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

	while (text < end) {
		size_t key_len = strcspn(text, "=\n");
		const char *p = text + key_len + 2;

		if (strncmp(text + key_len, "=\"", 2) == 0 && key_len < sizeof(key)) {
			memcpy(key, text, key_len);
			key[key_len] = '\0';
			if (notes_unquote(&p, value))
				notes_add(n, key, value);
		}
		text = strchrnul(text, '\n');
		text += *text == '\n';
		if (!*text)
			return;
	}
}
