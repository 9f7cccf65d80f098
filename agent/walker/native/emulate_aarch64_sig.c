/* Not needed on arm64: unwind_sig.c finds the caller of native code without rows by x30 or x29, and
 * emulate_stub_aarch64_sig.c finds that of stubs. */
#include "agent/walker/native/emulate.h"

enum emulation_end emulate_sig(struct emulation *f, uint32_t steps_max)
{
	(void)f;
	(void)steps_max;
	return EMULATE_LOST;
}
