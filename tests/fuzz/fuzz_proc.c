/* Arbitrary bytes in everything that discovery reads from /proc and from files in containers. */
#include <assert.h>
#include <string.h>
#include "daemon/discovery/container.h"
#include "daemon/discovery/jvm_library.h"
#include "daemon/discovery/name.h"
#include "daemon/discovery/notes.h"
#include "daemon/discovery/release.h"
#include "daemon/discovery/declared.h"
#include "daemon/ground/maps.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks a text that discovery passes on. */
static void check_text(const char *text, size_t size)
{
	assert(memchr(text, '\0', size));
	for (; *text; text++)
		assert((unsigned char)*text >= 0x20);
}

static void read_texts(const char *text)
{
	static struct maps_lines lines;
	static struct jvm_library maps;
	char id[CONTAINER_ID_SIZE], jdk[128];
	struct proc_status status;
	struct proc_stat stat;

	if (proc_parse_stat(text, &stat))
		check_text(stat.comm, sizeof(stat.comm));
	(void)proc_parse_status(text, &status);
	memset(&lines, 0, sizeof(lines));
	memset(&maps, 0, sizeof(maps));
	for (size_t i = 0, len = strlen(text); i < len; i += 7)
		maps_feed(&lines, text + i, len - i < 7 ? len - i : 7, jvm_library_line, &maps);
	if (container_id_from_cgroup(text, NULL, id))
		check_text(id, sizeof(id));
	if (release_parse(text, jdk, sizeof(jdk)))
		check_text(jdk, sizeof(jdk));
	(void)release_is_local(text, "/usr/lib/jvm/lib/server/libjvm.so");
}

/* Files written by the container runtime and by the kubelet. */
static void read_notes(const char *text, size_t size)
{
	static struct notes notes;

	memset(&notes, 0, sizeof(notes));
	notes_parse_bundle(&notes, text, size);
	notes_parse_docker(&notes, text, size);
	notes_parse_downward(&notes, text, size);
	check_text(notes.pod_uid, sizeof(notes.pod_uid));
	check_text(notes.allowed.no_word, sizeof(notes.allowed.no_word));
	assert(strlen(notes.list.text) < JVM_NOTES_SIZE && !strchr(notes.pod_uid, '/') &&
	       !strchr(notes.sandbox, '/'));
}

static void read_json(const char *text, size_t size)
{
	struct jvm jvm = { .container_id = "ab" };

	(void)container_parse_oci(text, size, &jvm);
	(void)container_parse_docker(text, size, &jvm);
	(void)container_parse_storage(text, size, &jvm);
	assert(container_parse_state(text, size) >= 0);
	check_text(jvm.container, sizeof(jvm.container));
	check_text(jvm.pod, sizeof(jvm.pod));
	check_text(jvm.image, sizeof(jvm.image));
}

/* The first half is a command line, the rest an environment. */
static void read_told(const char *text, size_t size)
{
	size_t half = size / 2;
	char *command = malloc(half + 1);
	struct declared told;

	if (!command)
		return;
	memcpy(command, text, half);
	command[half] = '\0';
	declared_read(command, half, text + half, size - half, &told);
	free(command);
	check_text(told.service, sizeof(told.service));
	check_text(told.namespace, sizeof(told.namespace));
	check_text(told.version, sizeof(told.version));
	check_text(told.environment, sizeof(told.environment));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char name[256];

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	jvm_name((const char *)data, size, "java", "comm", name, sizeof(name));
	check_text(name, sizeof(name));
	read_told(text, size);
	read_texts(text);
	read_json((const char *)data, size);
	read_notes(text, size);
	free(text);
	return 0;
}
