/* See container.h: finds the files of the container runtimes. */
#include "daemon/discovery/container_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "daemon/discovery/notes.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"
#include "daemon/ground/utf8.h"

#define FILE_MAX_BYTES	(4u << 20)
#define DIR_ENTRIES_MAX 512

const char *const container_tasks[] = {
	"/run/containerd/io.containerd.runtime.v2.task",
	"/run/k3s/containerd/io.containerd.runtime.v2.task",
	"/run/k0s/containerd/io.containerd.runtime.v2.task",
	"/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task",
	"/run/docker/containerd/daemon/io.containerd.runtime.v2.task",
	NULL,
};

typedef bool parse_fn(const char *text, size_t len, struct jvm *ret);

static int container_open_in(int root_dfd, const char *path, int flags)
{
	/* follow links (a moved /var/lib/docker is common), but only inside the host's root;
	 * openat2 rejects flags that O_PATH makes meaningless */
	unsigned always = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct open_how how = { .flags = (unsigned)flags | always,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root_dfd, path, &how, sizeof(how));
}

char *container_read_file(int root_dfd, const char *path, size_t *ret_len)
{
	CLEANUP(fd_closep) int fd = container_open_in(root_dfd, path, O_RDONLY);
	CLEANUP(freep) char *text = NULL;
	struct stat st;
	size_t len = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return NULL;
	while (len < (size_t)st.st_size && (n = read(fd, text + len, (size_t)st.st_size - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	*ret_len = len;
	return TAKE_PTR(text);
}

__attribute__((format(printf, 4, 5))) static bool try_file(int root_dfd, parse_fn *parse,
							   struct jvm *ret, const char *fmt, ...)
{
	CLEANUP(freep) char *text = NULL;
	char path[512];
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	text = container_read_file(root_dfd, path, &len);
	return text && parse(text, len, ret);
}

DIR *container_open_directory(int root_dfd, const char *path)
{
	int fd = container_open_in(root_dfd, path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		fd_close(fd);
	return dir;
}

/* Searches <tasks>/<containerd namespace>/<id>/config.json; the namespaces are k8s.io, default,
 * moby
 * ... */
static bool container_try_containerd(int root_dfd, const char *tasks, struct jvm *ret)
{
	DIR *dir = container_open_directory(root_dfd, tasks);
	const struct dirent *e;
	bool found = false;

	if (!dir)
		return false;
	for (int i = 0; !found && i < DIR_ENTRIES_MAX && (e = readdir(dir)); i++)
		if (e->d_name[0] != '.')
			found = try_file(root_dfd, container_parse_oci, ret, "%s/%s/%s/config.json",
					 tasks, e->d_name, ret->container_id);
	closedir(dir);
	return found;
}

static bool container_names_by_id(int root_dfd, struct jvm *ret)
{
	static const char *const storages[] = { "/run/containers/storage",
						"/var/lib/containers/storage" };
	const char *id = ret->container_id;

	for (size_t i = 0; container_tasks[i]; i++)
		if (container_try_containerd(root_dfd, container_tasks[i], ret))
			return true;
	if (try_file(root_dfd, container_parse_docker, ret,
		     "/var/lib/docker/containers/%s/config.v2.json", id))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(storages); i++)
		if (try_file(root_dfd, container_parse_oci, ret,
			     "%s/overlay-containers/%s/userdata/config.json", storages[i], id))
			return true;
	return try_file(root_dfd, container_parse_storage, ret,
			"/var/lib/containers/storage/overlay-containers/containers.json");
}

/* Reads the link of a namespace, "pid:[4026531836]". @who: a pid or "self". false = the process has
 * ended or may not be read. */
static bool container_read_namespace(int proc_dfd, const char *who, const char *name, char ret[64])
{
	char path[48];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/ns/%s", who, name);
	n = readlinkat(proc_dfd, path, ret, 63);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	return true;
}

/* Is @value the namespace @name of the host's first process? If a security module hides that
 * process, our own namespace is taken for the host's. */
static bool container_is_host_namespace(int proc_dfd, const char *name, const char *value)
{
	char host[64];

	return (container_read_namespace(proc_dfd, "1", name, host) ||
		container_read_namespace(proc_dfd, "self", name, host)) &&
	       strcmp(value, host) == 0;
}

bool container_belongs_to(int proc_dfd, pid_t pid, pid_t init)
{
	char ours[64], theirs[64], pid_text[16], init_text[16];

	if (pid == init)
		return true;
	snprintf(pid_text, sizeof(pid_text), "%d", (int)pid);
	snprintf(init_text, sizeof(init_text), "%d", (int)init);
	return init > 0 && container_read_namespace(proc_dfd, pid_text, "pid", ours) &&
	       container_read_namespace(proc_dfd, init_text, "pid", theirs) &&
	       strcmp(ours, theirs) == 0 && !container_is_host_namespace(proc_dfd, "pid", ours);
}

/* For runc and crun without an engine: searches <run>/<container's name>/<state file>. */
static bool container_name_by_state(int proc_dfd, int root_dfd, const char *run, const char *file,
				    struct jvm *ret)
{
	DIR *dir = container_open_directory(root_dfd, run);
	const struct dirent *e;
	bool found = false;

	if (!dir)
		return false;
	for (int i = 0; !found && i < DIR_ENTRIES_MAX && (e = readdir(dir)); i++) {
		CLEANUP(freep) char *text = NULL;
		char path[512];
		size_t len;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", run, e->d_name, file);
		text = container_read_file(root_dfd, path, &len);
		found = text &&
			container_belongs_to(proc_dfd, ret->pid, container_parse_state(text, len));
		/* an engine names the directory by the id, which is not a container's name */
		if (found && strcmp(e->d_name, ret->container_id) != 0)
			utf8_copy(ret->container, sizeof(ret->container), e->d_name,
				  strlen(e->d_name));
	}
	closedir(dir);
	return found;
}

/* If a security module hides the first process, our own root is taken. */
int container_host_root(int proc_dfd)
{
	int fd = openat(proc_dfd, "1/root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd;
}

/* The owner of a cgroup's directory. The hierarchy of version 1 is mounted below /sys/fs/cgroup
 * under the names of its controllers, or under the name after "name=". */
static uid_t container_uid_of_cgroup(void *userdata, const char *names, size_t names_len,
				     const char *path, size_t len)
{
	const int *root_dfd = userdata;
	CLEANUP(fd_closep) int fd = -1;
	char where[PATH_MAX];
	struct stat st;

	if (names_len > 5 && memcmp(names, "name=", 5) == 0) {
		names += 5;
		names_len -= 5;
	}
	if (*root_dfd < 0 || names_len > 255 || len > sizeof(where) - 300)
		return 0;
	snprintf(where, sizeof(where), "/sys/fs/cgroup/%.*s/%.*s", (int)names_len, names, (int)len,
		 path);
	fd = container_open_in(*root_dfd, where, O_PATH | O_DIRECTORY);
	if (fd < 0 && !names_len) { /* version 2 is mounted beside version 1 */
		snprintf(where, sizeof(where), "/sys/fs/cgroup/unified/%.*s", (int)len, path);
		fd = container_open_in(*root_dfd, where, O_PATH | O_DIRECTORY);
	}
	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_uid : 0;
}

void container_describe(int proc_dfd, int pid_dfd, struct jvm *ret)
{
	CLEANUP(fd_closep) int root_dfd = container_host_root(proc_dfd);
	const struct container_owner owner = { container_uid_of_cgroup, &root_dfd };
	char cgroup[8192], mnt[64], pid[16];

	ret->container_id[0] = ret->container[0] = ret->pod[0] = '\0';
	ret->image[0] = ret->image_digest[0] = '\0';
	ret->notes[0] = ret->noted_service[0] = ret->noted_version[0] = '\0';
	ret->allowed = (struct allowed){ 0 };
	if (proc_read(pid_dfd, "cgroup", cgroup, sizeof(cgroup)) > 0)
		(void)container_id_from_cgroup(cgroup, &owner, ret->container_id);
	snprintf(pid, sizeof(pid), "%d", (int)ret->pid);
	if (!ret->container_id[0] && container_read_namespace(proc_dfd, pid, "mnt", mnt) &&
	    container_is_host_namespace(proc_dfd, "mnt", mnt))
		return; /* it sees the host's files, so it is not in a container */
	if (root_dfd < 0)
		return;
	if (ret->container_id[0])
		notes_read(root_dfd, ret);
	if (ret->container_id[0] && container_names_by_id(root_dfd, ret))
		return;
	if (!container_name_by_state(proc_dfd, root_dfd, "/run/runc", "state.json", ret))
		(void)container_name_by_state(proc_dfd, root_dfd, "/run/crun", "status", ret);
}
