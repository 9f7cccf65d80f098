/* arm64: native code without rows is left by x30 or x29; stubs by forward_stub_aarch64_sig.c. */
#include "agent/hotspot/machine.h"
#include "agent/walker/native/forward.h"

enum forward_end forward_sig(struct forward *f, uint32_t steps_max)
{
	(void)f;
	(void)steps_max;
	return FORWARD_LOST;
}

bool forward_interpreter_sig(struct hot *h)
{
	(void)h;
	return false;
}

uint64_t forward_pushed_sig(const struct hot *h, const struct blob *b)
{
	(void)h;
	(void)b;
	return 0;
}

bool forward_dispatch_sig(struct hot *h)
{
	(void)h;
	return false;
}
