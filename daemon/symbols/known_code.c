/* See known_code.h. Every byte is checked to be inside the file. */
#include "daemon/symbols/known_code.h"

#include <string.h>

#define CLONE3_BYTES_MAX 96 /* bytes from the system call to the new thread's exit */

struct code {
	const uint8_t *bytes;
	size_t len;
};

/* The position behind the system call at which the new thread has ended: call *%rdx; %rax to
 * %rdi; exit. */
static size_t thread_end(const uint8_t *p, size_t len)
{
	static const uint8_t exit_call[] = { 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05 };

	for (size_t i = 0; i + 5 + sizeof(exit_call) <= len; i++) {
		const uint8_t *q = p + i;
		size_t move;

		if (q[0] != 0xff || q[1] != 0xd2)
			continue;
		move = q[2] == 0x48 && q[3] == 0x89 && q[4] == 0xc7 ? 3
		       : q[2] == 0x89 && q[3] == 0xc7		    ? 2
								    : 0;
		if (move && memcmp(q + 2 + move, exit_call, sizeof(exit_call)) == 0)
			return i + 2 + move + sizeof(exit_call);
	}
	return 0;
}

static int find_clone3(struct functions *f, const struct code *c, const GElf_Phdr *segment)
{
	static const uint8_t system_call[] = { 0xb8, 0xb3, 0x01, 0, 0, 0x0f, 0x05 };
	const uint8_t *at = c->bytes + segment->p_offset, *end = at + segment->p_filesz;

	while ((at = memmem(at, (size_t)(end - at), system_call, sizeof(system_call)))) {
		size_t rest = (size_t)(end - at), size;

		size = thread_end(at, rest < CLONE3_BYTES_MAX ? rest : CLONE3_BYTES_MAX);
		if (size)
			return functions_add_known(f, (uint64_t)(at - c->bytes), size, "clone3");
		at++;
	}
	return 0;
}

int known_code(struct functions *f, Elf *elf)
{
	struct code c = { 0 };
	GElf_Ehdr head;
	int e = 0;

	c.bytes = (const uint8_t *)elf_rawfile(elf, &c.len);
	if (!c.bytes || !gelf_getehdr(elf, &head) || head.e_machine != EM_X86_64 ||
	    !functions_named(f, "pthread_create"))
		return 0;
	for (int i = 0; i < f->n_loads && e == 0; i++) {
		const GElf_Phdr *p = &f->loads[i];

		if (p->p_flags & PF_X && p->p_offset <= c.len && p->p_filesz <= c.len - p->p_offset)
			e = find_clone3(f, &c, p);
	}
	return e;
}
