/* arm64: native code without rows is left by x30 or x29; stubs by emulate_stub_aarch64_sig.c. */
#include "agent/walker/native/emulate.h"

enum emulation_end emulate_sig(struct emulation *f, uint32_t steps_max)
{
	(void)f;
	(void)steps_max;
	return EMULATE_LOST;
}
