/* See filter.h. */
#include "daemon/discovery/filter.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/mem.h"
#include "proto/agent_calls.h"

#define ERROR_NUMBER_KILL 2147483646 /* systemd's default without SystemCallErrorNumber= */

static void filter_json_freep(cJSON **json)
{
	cJSON_Delete(*json);
}

static const char *filter_text_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* ---- a container's profile ------------------------------------------------------------------ */

static enum filter_effect filter_effect_of(const char *action)
{
	static const char *const deadly[] = { "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS",
					      "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP" };
	static const char *const harmless[] = { "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_LOG",
						"SCMP_ACT_TRACE", "SCMP_ACT_NOTIFY" };

	for (size_t i = 0; action && i < ARRAY_SIZE(deadly); i++)
		if (strcmp(action, deadly[i]) == 0)
			return FILTER_DEADLY;
	for (size_t i = 0; action && i < ARRAY_SIZE(harmless); i++)
		if (strcmp(action, harmless[i]) == 0)
			return FILTER_HARMLESS;
	return FILTER_UNKNOWN;
}

static bool filter_names(const cJSON *rule, const char *call)
{
	const cJSON *name;

	cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(rule, "names"))
	{
		if (cJSON_IsString(name) && strcmp(name->valuestring, call) == 0)
			return true;
	}
	return false;
}

static uint64_t filter_number_of(const cJSON *object, const char *name)
{
	double value = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return value >= 0 && value < 1.8e19 ? (uint64_t)value : 0; /* also false for NaN */
}

static bool filter_argument_matches(const cJSON *arg, const struct agent_call *call)
{
	uint64_t index = filter_number_of(arg, "index"), value = filter_number_of(arg, "value");
	uint64_t two = filter_number_of(arg, "valueTwo");
	uint64_t is = index < 6 ? call->args[index] : 0;
	const char *op = filter_text_of(arg, "op");

	if (!op)
		return false;
	return strcmp(op, "SCMP_CMP_EQ") == 0	       ? is == value
	       : strcmp(op, "SCMP_CMP_NE") == 0	       ? is != value
	       : strcmp(op, "SCMP_CMP_LT") == 0	       ? is < value
	       : strcmp(op, "SCMP_CMP_LE") == 0	       ? is <= value
	       : strcmp(op, "SCMP_CMP_GE") == 0	       ? is >= value
	       : strcmp(op, "SCMP_CMP_GT") == 0	       ? is > value
	       : strcmp(op, "SCMP_CMP_MASKED_EQ") == 0 ? (is & value) == two
						       : false;
}

/* The conditions for all arguments must hold; of several for the same argument one is enough, as in
 * the runtimes. */
static bool filter_arguments_match(const cJSON *rule, const struct agent_call *call)
{
	const cJSON *args = cJSON_GetObjectItemCaseSensitive(rule, "args"), *arg;
	bool seen[6] = { false }, good[6] = { false };

	cJSON_ArrayForEach(arg, args)
	{
		uint64_t index = filter_number_of(arg, "index");

		if (index >= 6)
			return false;
		seen[index] = true;
		good[index] |= filter_argument_matches(arg, call);
	}
	for (size_t i = 0; i < 6; i++)
		if (seen[i] && !good[i])
			return false;
	return true;
}

/* What the profile does to a call. If rules contradict each other libseccomp decides by their order
 * and kind, which this does not reproduce. */
static enum filter_effect filter_effect_on(const cJSON *seccomp, const struct agent_call *call)
{
	enum filter_effect effect = FILTER_UNKNOWN;
	bool any = false;
	const cJSON *rule;

	cJSON_ArrayForEach(rule, cJSON_GetObjectItemCaseSensitive(seccomp, "syscalls"))
	{
		enum filter_effect one = filter_effect_of(filter_text_of(rule, "action"));

		if (!filter_names(rule, call->name) || !filter_arguments_match(rule, call))
			continue;
		if (any && one != effect)
			return FILTER_UNKNOWN;
		effect = one;
		any = true;
	}
	return any ? effect : filter_effect_of(filter_text_of(seccomp, "defaultAction"));
}

enum filter_effect filter_of_bundle(const char *text, size_t len, const char **ret_call)
{
	CLEANUP(filter_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *seccomp = cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(json, "linux"), "seccomp");
	enum filter_effect all = FILTER_HARMLESS;

	if (!cJSON_IsObject(seccomp))
		return FILTER_UNKNOWN;
	for (size_t i = 0; i < agent_call_count; i++) {
		enum filter_effect one = filter_effect_on(seccomp, &agent_calls[i]);

		if (one == FILTER_DEADLY) {
			*ret_call = agent_calls[i].name;
			return one;
		}
		if (one == FILTER_UNKNOWN)
			all = one;
	}
	return all;
}

/* ---- a service's ---------------------------------------------------------------------------- */

/* The text after "key=" in a line of its own; "" = nothing, NULL = there is no such line. */
static const char *filter_line_of(const char *text, const char *key, size_t *ret_len)
{
	size_t key_len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, key_len) == 0 && line[key_len] == '=') {
			*ret_len = strcspn(line + key_len + 1, "\n");
			return line + key_len + 1;
		}
	}
	return NULL;
}

/* Finds @call in "name name:error name"; @ret_error: the text after its colon, "" = none. */
static bool filter_lists(const char *list, size_t len, const char *call, const char **ret_error)
{
	size_t call_len = strlen(call);

	for (size_t at = 0, n; at < len; at += n + 1) {
		n = strcspn(list + at, " \n");
		if (n >= call_len && memcmp(list + at, call, call_len) == 0 &&
		    (n == call_len || list[at + call_len] == ':')) {
			*ret_error = n == call_len ? "" : list + at + call_len + 1;
			return true;
		}
	}
	return false;
}

enum filter_effect filter_of_unit(const char *text, const char **ret_call)
{
	size_t len = 0, number_len = 0;
	const char *list = filter_line_of(text, "SystemCallFilter", &len), *error = "";
	const char *number = filter_line_of(text, "SystemCallErrorNumber", &number_len);
	long code = number && number_len ? strtol(number, NULL, 10) : 0;
	bool kills = code == 0 || code == ERROR_NUMBER_KILL, denies;

	if (!list || !len)
		return FILTER_UNKNOWN;
	denies = list[0] == '~';
	for (size_t i = 0; i < agent_call_count; i++) {
		const char *name = agent_calls[i].name;
		bool listed = filter_lists(list + denies, len - denies, name, &error);
		bool own = listed && *error; /* an error of its own, in either kind of list */

		if (own ? strncmp(error, "kill", 4) == 0 : kills && listed == denies) {
			*ret_call = name;
			return FILTER_DEADLY;
		}
	}
	return FILTER_HARMLESS;
}

bool filter_unit_name(const char *cgroup, char *ret, size_t ret_size)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789:_.\\@-",
			  word[] = ".service";

	for (const char *line = cgroup; *line;) {
		const char *end = strchrnul(line, '\n'),
			   *slash = memrchr(line, '/', (size_t)(end - line));
		size_t len = slash ? (size_t)(end - slash - 1) : 0;

		if (len > strlen(word) && len < ret_size && slash[1] != '-' &&
		    memcmp(end - strlen(word), word, strlen(word)) == 0 &&
		    strspn(slash + 1, allowed) >= len) {
			memcpy(ret, slash + 1, len);
			ret[len] = '\0';
			return true;
		}
		line = *end ? end + 1 : end;
	}
	return false;
}
