/* arm64: native code without rows is left by x30 or x29; stubs by forward_stub_aarch64_sig.c. */
#include "agent/walker/native/forward.h"

enum forward_end forward_sig(struct forward *f, uint32_t steps_max)
{
	(void)f;
	(void)steps_max;
	return FORWARD_LOST;
}
