/* The end of an interpreted frame, where its return address is in memory, in r13 or in rdi. */
#include <sys/mman.h>
#include "agent/walker/java/hotspot_priv.h"
#include "tests/unit/unit.h"

#if defined(__x86_64__)

#define ON_STACK 0x7000u /* addresses to which a method may return */
#define IN_R13	 0x8000u
#define IN_RDI	 0x9000u
#define TOP	 10 /* of the stack */
#define SENDER	 16 /* the sender's sp, in rbx */
#define ENTERED	 20 /* the value of r13 at entries that build no frame */
#define PAGE	 4096

#define BYTES(...) { __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

struct vm_layout vm_sig;
static uint64_t stack[64];

bool return_fits_java_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp)
{
	(void)h;
	(void)fp;
	(void)sp;
	return pc == ON_STACK || pc == IN_R13 || pc == IN_RDI;
}

bool return_known_java_sig(const struct hot *h, uint64_t pc)
{
	(void)h;
	return pc == ON_STACK;
}

bool method_check_sig(uint64_t method)
{
	(void)method;
	return false;
}

int32_t method_bci_sig(uint64_t method, uint64_t bcp)
{
	(void)method;
	(void)bcp;
	return -1;
}

void hot_push_method_sig(struct hot *h, uint64_t method, int32_t bci, uint8_t kind)
{
	(void)h;
	(void)method;
	(void)bci;
	(void)kind;
}

/* At @code, preceded by @before: to which address does the method return, and what is sp there?
 * 0 = to the address on top of the stack, as entries without a frame do. */
struct ending {
	uint64_t expected;
	size_t sp;
	uint64_t r13, rdi;
	bool sender_known; /* rbx is the sender's sp */
	uint8_t before, code[8], n_code, needed;
	const char *text;
};

static const struct ending endings[] = {
	{ ON_STACK, SENDER, 0, 0, true, 0xc9, BYTES(0x41, 0x5d), 1, "pop r13, behind leave" },
	{ ON_STACK, SENDER, 0, 0, true, 0x90, BYTES(0x41, 0x5d), 2, "pop r13" },
	{ ON_STACK, SENDER, 0, 0, true, 0xc9, BYTES(0x41, 0xc6, 0x47, 0x10, 0), 1,
	  "mov byte [r15 + 16], 0, behind leave" },
	{ IN_R13, SENDER, IN_R13, 0, true, 0x90, BYTES(0x48, 0x8b, 0xe3), 1, "mov rsp, rbx" },
	{ IN_R13, SENDER, IN_R13, 0, true, 0x90, BYTES(0x41, 0xff, 0xe5), 1, "jmp r13" },
	{ ON_STACK, TOP + 1, 0, 0, false, 0xc9, BYTES(0x41, 0xc6, 0x47, 0x10, 0), 2,
	  "mov byte [r15 + 16], 0, behind leave of a native method" },
	{ ON_STACK, TOP + 1, 0, 0, false, 0x90, BYTES(0x5f), 1, "pop rdi" },
	{ IN_RDI, TOP, 0, IN_RDI, false, 0x90, BYTES(0x48, 0x8b, 0xe3), 3, "mov rsp, rbx, native" },
	{ IN_RDI, TOP, 0, IN_RDI, false, 0x90, BYTES(0x49, 0x8b, 0xe5), 3, "mov rsp, r13, native" },
	{ IN_RDI, TOP, 0, IN_RDI, false, 0x90, BYTES(0xff, 0xe7), 2, "jmp rdi" },
	{ 0, 0, 0, IN_RDI, false, 0x90, BYTES(0xff, 0xe6), 0, "jmp rsi" },
	{ 0, 0, 0, IN_RDI, false, 0x90, BYTES(0x4c, 0x8b, 0xe3), 0, "mov r12, rbx" },
	{ 0, 0, 0, IN_RDI, false, 0x90, BYTES(0x5e), 0, "pop rsi" },
	{ 0, 0, 0, IN_RDI, false, 0x90, BYTES(0x41, 0x5f), 0, "pop r15" },
};

static uint8_t *end_of_memory(void)
{
	uint8_t *pages = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	return pages + PAGE;
}

/* The same when only the first @n bytes of the code are readable. */
static bool is_recognised(uint8_t *end, const struct ending *e, size_t n)
{
	bool other = n < e->needed || !e->expected;
	size_t sp = !other ? e->sp : e->sender_known ? TOP + 1 : ENTERED;
	struct hot h = {
		.at = { (uint64_t)(uintptr_t)(end - n), (uint64_t)(uintptr_t)&stack[TOP], 0x1234 },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.leaf = true,
	};

	memset(end - n - 16, 0x90, 16);
	end[-(ptrdiff_t)n - 1] = e->before;
	memcpy(end - n, e->code, n);
	memset(stack, 0, sizeof(stack));
	stack[TOP] = other || e->expected == ON_STACK ? ON_STACK : 0;
	h.regs.rbx = e->sender_known ? (uint64_t)(uintptr_t)&stack[SENDER] : 1;
	h.regs.r13 = e->sender_known ? e->r13 : (uint64_t)(uintptr_t)&stack[ENTERED];
	h.regs.rdi = e->rdi;
	return interpreter_prologue_sig(&h) && h.at.pc == (other ? ON_STACK : e->expected) &&
	       h.at.fp == 0x1234 && h.at.sp == (uint64_t)(uintptr_t)&stack[sp];
}

static void the_instructions_of_a_return_tell_where_its_address_is(void **state)
{
	uint8_t *end = end_of_memory();

	(void)state;
	for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++)
		for (size_t n = 1; n <= endings[k].n_code; n++)
			if (!is_recognised(end, &endings[k], n))
				fail_msg("%s, %zu bytes", endings[k].text, n);
	munmap(end - PAGE, (size_t)2 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_instructions_of_a_return_tell_where_its_address_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else /* the code under test is only for x86-64 */

int main(void)
{
	return 77;
}

#endif
