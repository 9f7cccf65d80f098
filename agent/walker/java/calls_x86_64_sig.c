/* Recognises calls on x86-64 by the bytes before a return address: the lengths of instructions
 * vary, so their beginning is not known. */
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/native/instruction.h"

#define CALL_BYTES	    5 /* OP_CALL and a distance */
#define CALL_REGISTER_BYTES 3 /* with REX */
#define MOV_BYTES	    10 /* mov r10, N */

/* Tries each length that a call can have: e8 rel32, and ff /2 with register, memory, SIB and
 * displacement. */
bool call_before_sig(uint64_t pc)
{
	uint64_t word = load_code_sig(pc - 8);
	uint8_t b[8];

	__builtin_memcpy(b, &word, 8);
	return b[3] == OP_CALL || (b[6] == 0xff && (b[7] & 0x38) == 0x10) ||
	       (b[5] == 0xff && (b[6] & 0xf8) == 0x50) || (b[5] == 0xff && b[6] == 0x14) ||
	       (b[4] == 0xff && b[5] == 0x54) ||
	       (b[2] == 0xff && ((b[3] & 0xf8) == 0x90 || b[3] == 0x15)) ||
	       (b[1] == 0xff && b[2] == 0x94);
}

uint64_t call_target_sig(uint64_t pc)
{
	if ((load_code_sig(pc - CALL_BYTES) & 0xff) != OP_CALL)
		return 0;
	return pc + (uint64_t)(int64_t)(int32_t)load32_unaligned_sig(pc - 4);
}

/* Knows mov r10, imm64; call r10 besides e8. */
uint64_t call_far_target_sig(uint64_t pc)
{
	uint64_t target = call_target_sig(pc);
	struct instruction i;

	if (!target && instruction_before_sig(pc, CALL_REGISTER_BYTES, &i) &&
	    instruction_goes_to(&i, GROUP_5_CALL, GPR_R10) &&
	    instruction_before_sig(pc - CALL_REGISTER_BYTES, MOV_BYTES, &i) &&
	    instruction_has_reg(&i, OP_MOV_IMMEDIATE, GPR_R10))
		return (uint64_t)i.immediate;
	return target;
}

/* From JDK 25 on the handler begins with a call, whose return address is in the frame. */
bool call_is_deopt_sig(uint64_t pc, uint64_t handler)
{
	if (pc == handler)
		return true;
	return vm_sig.version >= 25 &&
	       (pc == handler + 2 || pc == handler + 5 || pc == handler + 7);
}
