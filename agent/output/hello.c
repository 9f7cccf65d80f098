/* See hello.h. */
#include "agent/output/hello.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "agent/engine/cpu_timer.h"
#include "agent/hotspot/jni_names.h"

/* The content hash in ".../libkindling-HASH.so" or "...-HASH-loud.so"; "" for another name. */
static struct wire_str library_hash(void)
{
	static const char prefix[] = "libkindling-";
	const char *file = strrchr(agent.library, '/');
	uint32_t n = 0;

	file = file ? file + 1 : agent.library;
	if (strncmp(file, prefix, sizeof(prefix) - 1) != 0)
		return wire_text("");
	file += sizeof(prefix) - 1;
	while (file[n] && file[n] != '.' && file[n] != '-')
		n++;
	return (struct wire_str){ file, n };
}

static uint64_t ns_of(struct timespec ts)
{
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

enum writer_result hello_send(const struct wire_start *start)
{
	struct timespec tick = { 0, 0 }, real = { 0, 0 };
	char vendor[128], version[128], name[128];
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };

	jni_property(agent.env, "java.vm.vendor", vendor, sizeof(vendor));
	jni_property(agent.env, "java.runtime.version", version, sizeof(version));
	jni_property(agent.env, "java.vm.name", name, sizeof(name));
	h.agent_version = wire_text(KINDLING_VERSION);
	h.agent_hash = library_hash();
	h.jvm_vendor = wire_text(vendor);
	h.jvm_version = wire_text(version);
	h.jvm_name = wire_text(name);
	h.libc = wire_text(dlsym(RTLD_DEFAULT, "gnu_get_libc_version") ? "glibc" : "musl");
	h.engine = wire_text("cpu-timer");
	h.walker = wire_text(walker_name());
	h.note = wire_text(""); /* notes are sent as NOTE records */
	h.ns_pid = (uint64_t)getpid();
	h.interval_ns = engine.interval_ns;
	h.session = start->session;
	h.secret = start->secret;
	/* the kernel checks POSIX timers once per tick, and this clock advances with it */
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	h.tick_ns = ns_of(tick);
	clock_gettime(CLOCK_REALTIME, &real);
	h.real_ns = ns_of(real);
	h.mono_ns = mono_ns();
	return writer_hello(&h);
}
