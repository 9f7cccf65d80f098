/* Reads the facts about the target's mappings that the preflight needs, in one pass. */
#include "injector/inject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/maps.h"

/* The address at which the file is mapped, from the line of its offset 0; 0 = a line of another
 * part. */
static uint64_t base_of(const char *line)
{
	uint64_t start, end, offset;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) != 3)
		return 0;
	return offset == 0 ? start : 0;
}

static void injector_maps_on_line(void *userdata, char *line)
{
	struct maps *m = userdata;

	if (copies_is_one(line)) {
		m->copies++;
		(void)private_dir_name(line, m->private_dir);
	}
	/* OpenJ9 also has a libjvm.so, which may come before or after libj9vm */
	if (strstr(line, "/libj9vm")) {
		m->runtime = RUNTIME_OPENJ9;
	} else if (strstr(line, "/libjvm.so")) {
		if (m->runtime == RUNTIME_NONE)
			m->runtime = RUNTIME_HOTSPOT;
		if (!m->libjvm)
			m->libjvm = base_of(line);
	}
}

int maps_read(int proc_dfd, struct maps *ret)
{
	struct maps m = { 0 };
	int r = maps_each(proc_dfd, injector_maps_on_line, &m);

	if (r < 0)
		return r;
	*ret = m;
	return 0;
}
