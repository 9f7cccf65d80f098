/* container_bundle(), see container.h: finds the config.json that a container was made from. */
#include <stdio.h>
#include <string.h>
#include "daemon/discovery/container_priv.h"
#include "daemon/ground/mem.h"

#define DIR_ENTRIES_MAX 512

/* Searches <tasks>/<containerd namespace>/<id>/config.json. */
static char *bundle_of_containerd(int root_dfd, const char *tasks, const char *id, size_t *ret_len)
{
	DIR *dir = container_open_directory(root_dfd, tasks);
	const struct dirent *e;
	char path[512], *text = NULL;

	for (int i = 0; dir && !text && i < DIR_ENTRIES_MAX && (e = readdir(dir)); i++) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.200s/%s/config.json", tasks, e->d_name, id);
		text = container_read_file(root_dfd, path, ret_len);
	}
	if (dir)
		closedir(dir);
	return text;
}

char *container_bundle_by_id(int root_dfd, const char *id, size_t *ret_len)
{
	static const char *const storages[] = { "/run/containers/storage",
						"/var/lib/containers/storage" };
	char path[512], *text = NULL;

	for (size_t i = 0; container_tasks[i] && !text; i++)
		text = bundle_of_containerd(root_dfd, container_tasks[i], id, ret_len);
	for (size_t i = 0; i < ARRAY_SIZE(storages) && !text; i++) {
		snprintf(path, sizeof(path), "%s/overlay-containers/%s/userdata/config.json",
			 storages[i], id);
		text = container_read_file(root_dfd, path, ret_len);
	}
	return text;
}

/* For runc and crun without an engine: their state files name the bundle. */
static char *bundle_by_state(int proc_dfd, int root_dfd, const char *run, const char *file,
			     pid_t pid, size_t *ret_len)
{
	DIR *dir = container_open_directory(root_dfd, run);
	const struct dirent *e;
	char path[512 + 16], bundle[512], *config = NULL;

	for (int i = 0; dir && !config && i < DIR_ENTRIES_MAX && (e = readdir(dir)); i++) {
		CLEANUP(freep) char *text = NULL;
		size_t len;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.200s/%s", run, e->d_name, file);
		text = container_read_file(root_dfd, path, &len);
		if (!text ||
		    !container_belongs_to(proc_dfd, pid, container_parse_state(text, len)) ||
		    !container_parse_bundle(text, len, bundle, sizeof(bundle)))
			continue;
		snprintf(path, sizeof(path), "%s/config.json", bundle);
		config = container_read_file(root_dfd, path, ret_len);
	}
	if (dir)
		closedir(dir);
	return config;
}

char *container_bundle(int proc_dfd, const struct jvm *jvm, size_t *ret_len)
{
	CLEANUP(fd_closep) int root_dfd = container_host_root(proc_dfd);
	char *text = NULL;

	if (root_dfd < 0)
		return NULL;
	if (jvm->container_id[0])
		text = container_bundle_by_id(root_dfd, jvm->container_id, ret_len);
	if (!text)
		text = bundle_by_state(proc_dfd, root_dfd, "/run/runc", "state.json", jvm->pid,
				       ret_len);
	if (!text)
		text = bundle_by_state(proc_dfd, root_dfd, "/run/crun", "status", jvm->pid,
				       ret_len);
	return text;
}
