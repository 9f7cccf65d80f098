/* See container.h: reads names from the runtimes' files. */
#include "daemon/discovery/container.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"

static void container_json_freep(cJSON **json)
{
	cJSON_Delete(*json);
}

/* The text of a member; NULL if it is missing, not a string, or "". */
static const char *container_json_text_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) && item->valuestring[0] ? item->valuestring : NULL;
}

static void container_json_copy(char *dst, size_t size, const char *text)
{
	if (text)
		utf8_copy(dst, size, text, strlen(text));
}

static void copy_pod(struct jvm *ret, const char *name_space, const char *name)
{
	char pod[sizeof(ret->pod)];
	int n;

	if (!name)
		return;
	n = snprintf(pod, sizeof(pod), "%s%s%s", name_space ? name_space : "",
		     name_space ? "/" : "", name);
	utf8_copy(ret->pod, sizeof(ret->pod), pod,
		  (size_t)n < sizeof(pod) ? (size_t)n : sizeof(pod) - 1);
}

/* Copies "sha256:" and 64 hex digits from anywhere in @text, or 64 hex digits without the prefix if
 * @text is nothing else. */
static void container_json_copy_digest(struct jvm *ret, const char *text)
{
	static const char word[] = "sha256:", hex[] = "0123456789abcdef";
	const char *digits = text ? strstr(text, word) : NULL;

	if (!text || ret->image_digest[0])
		return;
	digits = digits ? digits + strlen(word) : text;
	if (strspn(digits, hex) != 64 || digits[64])
		return;
	snprintf(ret->image_digest, sizeof(ret->image_digest), "%s%s", word, digits);
}

static const char *container_json_first_of(const cJSON *object, const char *const *names, size_t n)
{
	const char *text = NULL;

	for (size_t i = 0; i < n && !text; i++)
		text = container_json_text_of(object, names[i]);
	return text;
}

bool container_parse_oci(const char *text, size_t len, struct jvm *ret)
{
	static const char *const container[] = { "io.kubernetes.cri.container-name",
						 "io.kubernetes.container.name" };
	static const char *const pod[] = { "io.kubernetes.cri.sandbox-name",
					   "io.kubernetes.pod.name" };
	static const char *const name_space[] = { "io.kubernetes.cri.sandbox-namespace",
						  "io.kubernetes.pod.namespace" };
	static const char *const image[] = { "io.kubernetes.cri.image-name",
					     "io.kubernetes.cri-o.ImageName",
					     "io.kubernetes.cri-o.Image" };
	CLEANUP(container_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *notes = cJSON_GetObjectItemCaseSensitive(json, "annotations");

	container_json_copy(ret->container, sizeof(ret->container),
			    container_json_first_of(notes, container, ARRAY_SIZE(container)));
	copy_pod(ret, container_json_first_of(notes, name_space, ARRAY_SIZE(name_space)),
		 container_json_first_of(notes, pod, ARRAY_SIZE(pod)));
	container_json_copy(ret->image, sizeof(ret->image),
			    container_json_first_of(notes, image, ARRAY_SIZE(image)));
	container_json_copy_digest(ret,
				   container_json_text_of(notes, "io.kubernetes.cri-o.ImageRef"));
	container_json_copy_digest(ret, ret->image);
	return ret->container[0] || ret->pod[0];
}

bool container_parse_docker(const char *text, size_t len, struct jvm *ret)
{
	CLEANUP(container_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(json, "Config");
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(config, "Labels");
	const char *name = container_json_text_of(labels, "io.kubernetes.container.name");

	if (!name)
		name = container_json_text_of(json, "Name");
	container_json_copy(ret->container, sizeof(ret->container),
			    name && name[0] == '/' ? name + 1 : name);
	copy_pod(ret, container_json_text_of(labels, "io.kubernetes.pod.namespace"),
		 container_json_text_of(labels, "io.kubernetes.pod.name"));
	container_json_copy(ret->image, sizeof(ret->image),
			    container_json_text_of(config, "Image"));
	container_json_copy_digest(ret, container_json_text_of(json, "Image"));
	return ret->container[0] || ret->pod[0];
}

bool container_parse_storage(const char *text, size_t len, struct jvm *ret)
{
	CLEANUP(container_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	CLEANUP(container_json_freep) cJSON *details = NULL;
	const cJSON *entry, *name;
	const char *id = NULL;

	cJSON_ArrayForEach(entry, json)
	{
		id = container_json_text_of(entry, "id");
		if (id && strcmp(id, ret->container_id) == 0)
			break;
	}
	if (!entry)
		return false;
	name = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(entry, "names"), 0);
	container_json_copy(ret->container, sizeof(ret->container), cJSON_GetStringValue(name));
	if (container_json_text_of(entry, "metadata"))
		details = cJSON_Parse(
			container_json_text_of(entry, "metadata")); /* JSON inside a JSON string */
	container_json_copy(ret->image, sizeof(ret->image),
			    container_json_text_of(details, "image-name"));
	container_json_copy_digest(ret, container_json_text_of(entry, "image"));
	return ret->container[0];
}

pid_t container_parse_state(const char *text, size_t len)
{
	CLEANUP(container_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *pid = cJSON_GetObjectItemCaseSensitive(json, "init_process_pid"); /* runc */

	if (!pid)
		pid = cJSON_GetObjectItemCaseSensitive(json, "pid"); /* crun */
	if (!cJSON_IsNumber(pid) || pid->valuedouble < 1 || pid->valuedouble > INT32_MAX)
		return 0;
	return (pid_t)pid->valuedouble;
}

bool container_parse_bundle(const char *text, size_t len, char *ret, size_t ret_size)
{
	static const char label[] = "bundle=";
	CLEANUP(container_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(json, "config"), "labels"); /* runc */
	const char *found = container_json_text_of(json, "bundle"); /* crun */
	const cJSON *item;

	cJSON_ArrayForEach(item, labels)
	{
		if (cJSON_IsString(item) && strncmp(item->valuestring, label, strlen(label)) == 0)
			found = item->valuestring + strlen(label);
	}
	if (!found || strlen(found) >= ret_size)
		return false;
	strcpy(ret, found);
	return true;
}
