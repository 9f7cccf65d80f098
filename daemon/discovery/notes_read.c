/* notes_read(), see notes.h: finds the files. */
#include "daemon/discovery/notes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/discovery/container_priv.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"

#define VOLUMES_MAX 32 /* volumes of a pod that are read, of each kind */

static bool notes_of_docker(int root_dfd, const char *id, struct notes *n)
{
	CLEANUP(freep) char *text = NULL;
	char path[160];
	size_t len;

	snprintf(path, sizeof(path), "/var/lib/docker/containers/%.64s/config.v2.json", id);
	text = container_read_file(root_dfd, path, &len);
	if (text)
		notes_parse_docker(n, text, len);
	return text != NULL;
}

static bool notes_of_bundle(int root_dfd, const char *id, struct notes *n)
{
	size_t len;
	CLEANUP(freep) char *text = container_bundle_by_id(root_dfd, id, &len);

	if (text)
		notes_parse_bundle(n, text, len);
	return text != NULL;
}

/* Reads <volumes>/<any>/labels and annotations, the usual file names of downward-API volumes. */
static void notes_of_volumes(int root_dfd, const char *volumes, struct notes *n)
{
	static const char *const files[] = { "labels", "annotations" };
	DIR *dir = container_open_directory(root_dfd, volumes);
	const struct dirent *e;

	for (int i = 0; dir && i < VOLUMES_MAX && (e = readdir(dir)); i++) {
		if (e->d_name[0] == '.')
			continue;
		for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
			CLEANUP(freep) char *text = NULL;
			char path[512];
			size_t len;

			snprintf(path, sizeof(path), "%s/%.255s/%s", volumes, e->d_name, files[f]);
			text = container_read_file(root_dfd, path, &len);
			if (text)
				notes_parse_downward(n, text, len);
		}
	}
	if (dir)
		closedir(dir);
}

/* Reads the files that the kubelet wrote for the pod, if the pod has such a volume. */
static void notes_of_kubelet(int root_dfd, struct notes *n)
{
	static const char *const kubelets[] = { "/var/lib/kubelet", "/var/lib/k0s/kubelet",
						"/var/snap/microk8s/common/var/lib/kubelet" };
	static const char *const kinds[] = { "downward-api", "projected" };
	char path[160];

	for (size_t k = 0; k < ARRAY_SIZE(kubelets); k++)
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			snprintf(path, sizeof(path), "%s/pods/%s/volumes/kubernetes.io~%s",
				 kubelets[k], n->pod_uid, kinds[i]);
			notes_of_volumes(root_dfd, path, n);
		}
}

/* Writes the value of the first of @names that is among the notes; "" = none is. */
static void notes_pick(const struct notes *n, const char *const *names, size_t count, char *ret,
		       size_t size)
{
	char value[LABEL_VALUE_SIZE] = "";

	for (size_t i = 0; i < count && !value[0]; i++)
		labels_get(n->list.text, names[i], value);
	utf8_copy(ret, size, value, strlen(value));
}

void notes_give(const struct notes *n, struct jvm *jvm)
{
	static const char *const service[] = { "resource.opentelemetry.io/service.name",
					       "app.kubernetes.io/name", "app",
					       "com.docker.compose.service" };
	static const char *const version[] = { "resource.opentelemetry.io/service.version",
					       "app.kubernetes.io/version" };

	notes_pick(n, service, ARRAY_SIZE(service), jvm->noted_service, sizeof(jvm->noted_service));
	notes_pick(n, version, ARRAY_SIZE(version), jvm->noted_version, sizeof(jvm->noted_version));
	memcpy(jvm->notes, n->list.text, n->list.len + 1); /* notes_add() limited the length */
	jvm->allowed = n->allowed;
}

void notes_read(int root_dfd, struct jvm *jvm)
{
	CLEANUP(freep) struct notes *n = calloc(1, sizeof(*n));
	char sandbox[sizeof(n->sandbox)];

	if (!n)
		return;
	if (!notes_of_docker(root_dfd, jvm->container_id, n))
		(void)notes_of_bundle(root_dfd, jvm->container_id, n);
	memcpy(sandbox, n->sandbox, sizeof(sandbox));
	if (sandbox[0] && !notes_of_docker(root_dfd, sandbox, n))
		(void)notes_of_bundle(root_dfd, sandbox, n);
	if (n->pod_uid[0])
		notes_of_kubelet(root_dfd, n);
	notes_give(n, jvm);
}
