/* Recognises calls on x86-64 by the bytes before a return address: the lengths of instructions
 * vary, so their beginning is not known. */
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/native/instruction.h"

#define CALL_BYTES	    5 /* OP_CALL and a distance */
#define CALL_REGISTER_BYTES 3 /* with REX */
#define MOV_BYTES	    10 /* mov r10, N */

/* ModRM byte of a call through an operand. @mod: 0 = [register], 1 = with 8, 2 = with 32 bits of
 * displacement, 3 = the register itself. @rm: a register, or one of the two below. */
#define MODRM_CALL(mod, rm) ((mod) << 6 | GROUP_5_CALL << 3 | (rm))
#define RM_SIB		    4 /* a SIB byte follows */
#define RM_RIP		    5 /* with mod 0: [rip + 32 bits] */
#define ANY_RM(modrm)	    ((modrm) & ~7)
#define ANY_MOD_RM(modrm)   ((modrm) & (7 << 3))

/* Tries each length that a call can have: OP_CALL with a distance, and OP_GROUP_5 with register,
 * memory, SIB and displacement. */
bool call_before_sig(uint64_t pc)
{
	uint64_t word = load_code_sig(pc - 8);
	uint8_t b[8];

	__builtin_memcpy(b, &word, 8);
	return b[3] == OP_CALL ||
	       (b[6] == OP_GROUP_5 && ANY_MOD_RM(b[7]) == ANY_MOD_RM(MODRM_CALL(3, 0))) ||
	       (b[5] == OP_GROUP_5 && ANY_RM(b[6]) == MODRM_CALL(1, 0)) ||
	       (b[5] == OP_GROUP_5 && b[6] == MODRM_CALL(0, RM_SIB)) ||
	       (b[4] == OP_GROUP_5 && b[5] == MODRM_CALL(1, RM_SIB)) ||
	       (b[2] == OP_GROUP_5 && ANY_RM(b[3]) == MODRM_CALL(2, 0)) ||
	       (b[2] == OP_GROUP_5 && b[3] == MODRM_CALL(0, RM_RIP)) ||
	       (b[1] == OP_GROUP_5 && b[2] == MODRM_CALL(2, RM_SIB));
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
