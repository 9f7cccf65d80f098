/* See fault.h. */
#include "daemon/ground/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/utf8.h"

static const char *const step_names[FAULT_STEP_COUNT] = {
#define X(id, name) [FAULT_##id] = name,
	FAULT_STEPS(X)
#undef X
};

const char *fault_step_name(unsigned step)
{
	return step < FAULT_STEP_COUNT ? step_names[step] : "unknown";
}

int fault_set(struct fault *f, int code, enum fault_step step, const char *fmt, ...)
{
	size_t len = strlen(fmt);
	va_list ap;
	int n;

	if (!f || f->code)
		return -code;
	f->code = code;
	f->step = (uint16_t)step;
	va_start(ap, fmt);
	n = vsnprintf(f->what, sizeof(f->what), fmt, ap);
	va_end(ap);
	if (len >= 2 && strcmp(fmt + len - 2, ": ") == 0 && n > 0 && (size_t)n < sizeof(f->what))
		snprintf(f->what + n, sizeof(f->what) - (size_t)n, "%s", strerror(code));
	(void)utf8_mend(f->what); /* the text, or a name in it, may be cut inside a character */
	return -code;
}
