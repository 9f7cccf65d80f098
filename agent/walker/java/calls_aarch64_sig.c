/* Recognises calls on arm64 by the instruction before a return address. */
#include "agent/walker/java/hotspot_priv.h"

bool call_before_sig(uint64_t pc)
{
	uint32_t i = load32_sig(pc - 4);

	return pc % 4 == 0 && (code_calls_near(i) || code_calls_register(i));
}

/* bl reaches 128 MiB. Farther calls go through a trampoline in the same nmethod: ldr x8, #8; br
 * x8. */
uint64_t call_target_sig(uint64_t pc)
{
	uint32_t i = load32_sig(pc - 4);
	uint64_t target;

	if (!code_calls_near(i))
		return 0;
	target = pc - 4 + (uint64_t)((int64_t)(int32_t)(i << 6) >> 4);
	if (load32_sig(target) == 0x58000048 && load32_sig(target + 4) == 0xd61f0100)
		return load_code_sig(target + 8);
	return target;
}

static uint64_t calls_aarch64_moved(uint32_t i, uint32_t op, uint32_t reg, unsigned shift)
{
	if ((i & 0xffe0001f) != (op | shift / 16 << 21 | reg))
		return UINT64_MAX;
	return (uint64_t)(i >> 5 & 0xffff) << shift;
}

/* Knows mov xn, movk, movk; blr xn besides bl. */
uint64_t call_far_target_sig(uint64_t pc)
{
	uint32_t call = load32_sig(pc - 4), reg = call >> 5 & 31;
	uint64_t low, middle, high;

	if (!code_calls_register(call))
		return call_target_sig(pc);
	low = calls_aarch64_moved(load32_sig(pc - 16), 0xd2800000, reg, 0);
	middle = calls_aarch64_moved(load32_sig(pc - 12), 0xf2800000, reg, 16);
	high = calls_aarch64_moved(load32_sig(pc - 8), 0xf2800000, reg, 32);
	if (low == UINT64_MAX || middle == UINT64_MAX || high == UINT64_MAX)
		return 0;
	return low | middle | high;
}

/* From JDK 25 on the handler may begin with a near or far call, whose return address is in the
 * frame. */
bool call_is_deopt_sig(uint64_t pc, uint64_t handler)
{
	return pc == handler || (vm_sig.version >= 25 && (pc == handler + 4 || pc == handler + 12));
}
