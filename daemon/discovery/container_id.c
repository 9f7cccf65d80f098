/* See container.h: finds container ids in cgroup paths. */
#include "daemon/discovery/container.h"

#include <string.h>

#define HEX "0123456789abcdef"

/*
 * Finds the id in one element of a cgroup path: "<id>", "docker-<id>.scope", "libpod-<id>",
 * "kubepods-pod1.slice:cri-containerd:<id>". A prefix of an id ends in '-' or ':'.
 */
static bool container_id_in_element(const char *element, size_t len, char ret[CONTAINER_ID_SIZE])
{
	static const char scope[] = ".scope";
	size_t id_len, start;

	if (len > strlen(scope) && memcmp(element + len - strlen(scope), scope, strlen(scope)) == 0)
		len -= strlen(scope);
	for (start = len; start > 0 && element[start - 1] != '-' && element[start - 1] != ':';)
		start--;
	id_len = len - start;
	if (id_len != 64) { /* Fargate: 32 hex digits, '-' and a number */
		size_t digits = id_len;

		if (start < 33 || digits < 1 || digits > 20 || element[start - 1] != '-' ||
		    strspn(element + start, "0123456789") < digits)
			return false;
		start -= 33;
		id_len = 33 + digits;
		if (strspn(element + start, HEX) != 32 ||
		    (start > 0 && element[start - 1] != '-' && element[start - 1] != ':'))
			return false;
	} else if (strspn(element + start, HEX) < 64)
		return false;
	memcpy(ret, element + start, id_len);
	ret[id_len] = '\0';
	return true;
}

/* Searches from the last element to the first, so that the innermost container is found. */
static bool container_id_in_path(const char *path, size_t len, char ret[CONTAINER_ID_SIZE])
{
	while (len) {
		const char *slash = memrchr(path, '/', len);
		const char *element = slash ? slash + 1 : path;

		if (container_id_in_element(element, (size_t)(path + len - element), ret))
			return true;
		len = slash ? (size_t)(slash - path) : 0;
	}
	return false;
}

/* Is the element "user@1000.service", below which systemd lets a user create groups? */
static bool container_id_is_user_service(const char *element, size_t len)
{
	return len > 5 && memcmp(element, "user@", 5) == 0;
}

/*
 * The length of the part of a path of @len bytes that root named: below a group of another owner,
 * that owner chooses all names.
 */
static size_t container_id_trusted_length(const struct container_owner *owner, const char *names,
					  size_t names_len, const char *path, size_t len)
{
	size_t at = 0, end;

	for (; at < len; at = end + 1) {
		const char *slash = memchr(path + at, '/', len - at);

		end = slash ? (size_t)(slash - path) : len;
		if (container_id_is_user_service(path + at, end - at) ||
		    (owner && end > at &&
		     owner->uid_of(owner->userdata, names, names_len, path, end) != 0))
			return end;
	}
	return len;
}

bool container_id_from_cgroup(const char *cgroup, const struct container_owner *owner,
			      char ret[CONTAINER_ID_SIZE])
{
	/* all hierarchies are searched, because runtimes use different ones (cgroups(7)) */
	for (const char *line = cgroup; *line;) {
		const char *end = strchrnul(line, '\n');
		const char *names = memchr(line, ':', (size_t)(end - line)), *path = NULL;
		size_t len;

		if (names)
			path = memchr(names + 1, ':', (size_t)(end - names - 1));
		len = path ? container_id_trusted_length(owner, names + 1,
							 (size_t)(path - names - 1), path + 1,
							 (size_t)(end - path - 1))
			   : 0;
		if (path && container_id_in_path(path + 1, len, ret))
			return true;
		line = *end ? end + 1 : end;
	}
	return false;
}
