/* See name.h. The options are those of java(1), JDK 8 to 25. */
#include "daemon/discovery/name.h"

#include <stdbool.h>
#include <string.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"

struct args {
	const char *next, *end;
};

/* The next argument, *ret_len bytes, which need not be NUL-terminated; NULL at the end. */
static const char *name_next_arg(struct args *a, size_t *ret_len)
{
	const char *arg = a->next;

	if (a->next >= a->end)
		return NULL;
	*ret_len = strnlen(arg, (size_t)(a->end - arg));
	a->next += *ret_len + 1;
	return arg;
}

static bool name_equal(const char *arg, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(arg, word, len) == 0;
}

static bool name_begins(const char *arg, size_t len, const char *word)
{
	return len >= strlen(word) && memcmp(arg, word, strlen(word)) == 0;
}

/* Is @arg an option whose value is the next argument? With "=" the value is in the same one. */
static bool name_takes_value(const char *arg, size_t len)
{
	static const char *const options[] = {
		"-cp",
		"-classpath",
		"--class-path",
		"-p",
		"--module-path",
		"--upgrade-module-path",
		"-d",
		"--add-modules",
		"--limit-modules",
		"--add-opens",
		"--add-exports",
		"--add-reads",
		"--source",
		"--patch-module",
		"--enable-native-access",
		"--describe-module",
		"-describe-module",
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (name_equal(arg, len, options[i]))
			return true;
	return false;
}

static const char *name_base_name(const char *path, size_t *len)
{
	const char *slash = memrchr(path, '/', *len);

	if (!slash || slash + 1 == path + *len)
		return path;
	*len -= (size_t)(slash + 1 - path);
	return slash + 1;
}

/* The class of "module/class"; a module alone is returned as it is. */
static const char *name_module_main(const char *arg, size_t *len)
{
	const char *slash = memchr(arg, '/', *len);

	if (!slash || slash + 1 == arg + *len)
		return arg;
	*len -= (size_t)(slash + 1 - arg);
	return slash + 1;
}

/* What `java` runs with these arguments, or NULL. *ret_class: it is a class, not a file. */
static const char *name_find_main(struct args *a, size_t *ret_len, bool *ret_class)
{
	const char *arg;
	size_t len;

	*ret_class = false;
	while ((arg = name_next_arg(a, &len))) {
		if (name_equal(arg, len, "-jar")) {
			arg = name_next_arg(a, ret_len);
			return arg ? name_base_name(arg, ret_len) : NULL;
		}
		if (name_equal(arg, len, "-m") || name_equal(arg, len, "--module")) {
			arg = name_next_arg(a, ret_len);
			return arg ? name_module_main(arg, ret_len) : NULL;
		}
		if (name_begins(arg, len, "--module=")) {
			*ret_len = len - strlen("--module=");
			return name_module_main(arg + strlen("--module="), ret_len);
		}
		if (name_takes_value(arg, len))
			(void)name_next_arg(a, &len);
		else if (len && arg[0] != '-' && arg[0] != '@') {
			*ret_len = len;
			*ret_class = len < 5 || memcmp(arg + len - 5, ".java", 5) != 0;
			return *ret_class ? arg : name_base_name(arg, ret_len);
		}
	}
	return NULL;
}

static bool name_is_launcher(const char *path, size_t len)
{
	path = name_base_name(path, &len);
	return name_equal(path, len, "java");
}

void jvm_name(const char *cmdline, size_t len, const char *exe, const char *fallback, char *ret,
	      size_t ret_size)
{
	struct args args = { cmdline, cmdline + len };
	const char *name = NULL, *arg0;
	size_t name_len = 0, arg0_len = 0;
	bool is_class = false;

	arg0 = name_next_arg(&args, &arg0_len);
	if (strcmp(exe, "java") == 0 || (arg0 && name_is_launcher(arg0, arg0_len)))
		name = name_find_main(&args, &name_len, &is_class);
	else if (exe[0]) {
		name = exe;
		name_len = strlen(exe);
	}
	if (!name || !name_len) {
		name = fallback;
		name_len = strlen(fallback);
	}
	utf8_copy(ret, ret_size, name, name_len);
	for (char *p = ret; is_class && *p; p++) /* com/example/Main is the same class as
						  * com.example.Main */
		if (*p == '/')
			*p = '.';
}
