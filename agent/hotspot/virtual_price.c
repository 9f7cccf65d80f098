/* See virtual_price.h. */
#include "agent/hotspot/virtual_price.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/base/guard.h"
#include "agent/hotspot/jvmti_env.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/method.h"

#define VIRTUAL_SINCE  21
#define OLD_ENOUGH_NS  (60 * NS_PER_S)
#define STAT_STARTTIME 22

typedef jclass JNICALL find_class_fn(JNIEnv *env, const char *name);

/*
 * Has the class java.lang.VirtualThread been initialised? Only the creation of a virtual thread
 * does that. FindClass would initialise it, so the class is found by another function.
 */
static bool is_initialised(void)
{
	find_class_fn *find_class = (find_class_fn *)libjvm_symbol("JVM_FindClassFromBootLoader");
	long state_at = libjvm_offset("InstanceKlass", "_init_state");
	JNIEnv *env = agent.env;
	uint64_t klass = 0;
	int32_t done;
	jclass found;

	if (!find_class || state_at < 0 ||
	    !libjvm_int_constant("InstanceKlass::fully_initialized", &done))
		return true;
	found = find_class(env, "java/lang/VirtualThread");
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	if (found) {
		klass = klass_of_class(env, found);
		(*env)->DeleteLocalRef(env, found);
	}
	return klass && load8_sig(klass + (uint64_t)state_at) >= done;
}

/* Called often, so the result is kept once it is true. */
bool virtual_threads_used(void)
{
	static bool used;

	if (!used && vm_sig.version >= VIRTUAL_SINCE)
		used = is_initialised();
	return used;
}

/* ---- other environments ---- */

static int virtual_price_on_object(struct dl_phdr_info *info, size_t size, void *context)
{
	static const char *const with_environment[] = { "/libinstrument.so", "/libjdwp.so" };

	(void)size;
	for (size_t i = 0; i < sizeof(with_environment) / sizeof(with_environment[0]); i++)
		if (info->dlpi_name && strstr(info->dlpi_name, with_environment[i]))
			*(bool *)context = true;
	return 0;
}

bool virtual_price_is_paid(void)
{
	bool paid = vm_sig.version < VIRTUAL_SINCE || jvmti_env_is_there();

	if (!paid)
		dl_iterate_phdr(virtual_price_on_object, &paid);
	return paid;
}

/* ---- the JVM's age ---- */

/* The start of the process in clock ticks since boot; 0 = unknown, which counts as old enough. */
static uint64_t born_ticks(void)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	uint64_t ticks = 0;
	char buf[512];
	const char *p;
	long n;

	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	p = strrchr(buf, ')'); /* the name of the process, before it, may contain any characters */
	for (int field = 2; p && field < STAT_STARTTIME; field++)
		p = strchr(p + 1, ' ');
	for (p = p ? p + 1 : ""; *p >= '0' && *p <= '9'; p++)
		ticks = ticks * 10 + (uint64_t)(*p - '0');
	return ticks;
}

uint64_t virtual_price_wait_ns(void)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t old_enough_ns, now_ns;
	struct timespec now;

	if (hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return 0;
	now_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	old_enough_ns = born_ticks() * (NS_PER_S / (uint64_t)hz) + OLD_ENOUGH_NS;
	return now_ns < old_enough_ns ? old_enough_ns - now_ns : 0;
}
