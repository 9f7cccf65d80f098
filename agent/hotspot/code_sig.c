/* See code.h. The JVM may free the code that is read here at any moment, so all loads are
 * guarded. */
#include "agent/hotspot/code.h"

#include <stddef.h>
#include "agent/base/guard.h"
#include "agent/hotspot/stub_names.h"

#define SEGMENT_FREE  0xff
#define SEGMENT_HOPS  65536 /* steps of at most 254 segments each */
#define KIND_SLOTS    256
#define BLOB_SIZE_MAX (64u << 20)
#define LABEL_BYTES   48
#define LABEL_SLOTS   256
#define LABEL_PROBES  8

struct code_places code_places_sig;

/* A cache of kinds by the address of the blob's name, which is a literal in libjvm: name << 8 |
 * kind. */
static uint64_t kind_cache[KIND_SLOTS];

bool code_is_used_sig(uint64_t base)
{
	return load8_sig(base - (uint32_t)vm_sig.block_header_size + (uint32_t)vm_sig.block_used);
}

/* The address of the CodeBlob in the heap block that contains @pc; 0 = the block is free. */
static uint64_t find_base(uint64_t heap, uint64_t low, uint64_t pc)
{
	uint64_t map = load64_sig(heap + (uint32_t)vm_sig.heap_segmap + (uint32_t)vm_sig.space_low);
	uint32_t log2 = load32_sig(heap + (uint32_t)vm_sig.heap_log2_segment);
	uint64_t segment, block;
	uint8_t back;

	if (log2 > 16)
		return 0;
	segment = (pc - low) >> log2;
	for (int hops = 0;; hops++) {
		back = load8_sig(map + segment);
		if (back == SEGMENT_FREE || hops > SEGMENT_HOPS || back > segment)
			return 0;
		if (back == 0)
			break;
		segment -= back;
	}
	block = low + (segment << log2);
	block += (uint32_t)vm_sig.block_header_size;
	return code_is_used_sig(block) ? block : 0;
}

static bool begins_with(uint64_t text, const char *prefix)
{
	for (; *prefix; prefix++, text++)
		if (load8_sig(text) != (uint8_t)*prefix)
			return false;
	return true;
}

/* Names differ by version: up to JDK 24 "DeoptimizationBlob", from 25 on "Shared Runtime
 * deopt_blob". */
static const struct {
	const char *prefix;
	enum blob_kind kind;
} names[] = {
	{ "nmethod", BLOB_NMETHOD },
	{ "native nmethod", BLOB_NATIVE_NMETHOD },
	{ "I2C/C2I", BLOB_ADAPTER },
	{ "StubRoutines", BLOB_STUBS },
	{ "Stub Generator", BLOB_STUBS },
	{ "vtable chunks", BLOB_VTABLE },
	{ "MethodHandles", BLOB_METHOD_HANDLES },
	{ "DeoptimizationBlob", BLOB_DEOPT },
	{ "Shared Runtime deopt", BLOB_DEOPT },
	{ "ExceptionBlob", BLOB_EXCEPTION },
	{ "C2 Runtime exception", BLOB_EXCEPTION },
	{ "Opto Runtime exception", BLOB_EXCEPTION },
	{ "SafepointBlob", BLOB_SAFEPOINT },
	{ "Shared Runtime polling", BLOB_SAFEPOINT },
	{ "UncommonTrap", BLOB_UNCOMMON_TRAP },
	{ "C2 Runtime uncommon", BLOB_UNCOMMON_TRAP },
	{ "Opto Runtime uncommon", BLOB_UNCOMMON_TRAP },
	{ "InlineCacheBuffer", BLOB_INLINE_CACHE },
};

static enum blob_kind kind_by_name(uint64_t name)
{
	uint64_t *slot = &kind_cache[(name >> 3 ^ name >> 11) % KIND_SLOTS];
	uint64_t cached = __atomic_load_n(slot, __ATOMIC_RELAXED);
	enum blob_kind kind = BLOB_NONE;

	if (cached >> 8 == name)
		return (enum blob_kind)(cached & 0xff);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && kind == BLOB_NONE; i++)
		if (begins_with(name, names[i].prefix))
			kind = names[i].kind;
	__atomic_store_n(slot, name << 8 | kind, __ATOMIC_RELAXED);
	return kind;
}

static enum blob_kind find_kind(const struct blob *b, uint64_t pc)
{
	uint64_t name;
	enum blob_kind kind;

	if (pc >= vm_sig.interpreter_low && pc < vm_sig.interpreter_high)
		return BLOB_INTERPRETER;
	name = load64_sig(b->base + (uint32_t)vm_sig.blob_name);
	if (!name)
		return BLOB_OTHER;
	kind = kind_by_name(name);
	if (kind != BLOB_NONE)
		return kind;
	if (vm_sig.blob_kind >= 0)
		return (enum blob_kind)
			vm_sig.kinds[load8_sig(b->base + (uint32_t)vm_sig.blob_kind) % 16];
	return b->frame_words > 0 ? BLOB_RUNTIME : BLOB_OTHER;
}

static bool read_blob(uint64_t base, uint64_t pc, struct blob *b)
{
	uint32_t size = load32_sig(base + (uint32_t)vm_sig.blob_size);

	if (size > BLOB_SIZE_MAX)
		return false;
	b->base = base;
	b->end = base + size;
	b->frame_words = (int32_t)load32_sig(base + (uint32_t)vm_sig.blob_frame_size);
	b->frame_complete =
		vm_sig.frame_complete_is_short
			? (int16_t)load16_sig(base + (uint32_t)vm_sig.blob_frame_complete)
			: (int32_t)load32_sig(base + (uint32_t)vm_sig.blob_frame_complete);
	b->code = vm_sig.blob_code_begin >= 0
			  ? load64_sig(base + (uint32_t)vm_sig.blob_code_begin)
			  : base + load32_sig(base + (uint32_t)vm_sig.blob_code_offset);
	b->kind = find_kind(b, pc);
	return true;
}

bool code_blob_sig(uint64_t pc, struct blob *ret)
{
	for (uint32_t i = 0; i < vm_sig.n_heaps; i++) {
		uint64_t memory = vm_sig.heaps[i] + (uint32_t)vm_sig.heap_memory;
		uint64_t low = load64_sig(memory + (uint32_t)vm_sig.space_low);
		uint64_t base;

		if (pc < low || pc >= load64_sig(memory + (uint32_t)vm_sig.space_high))
			continue;
		base = find_base(vm_sig.heaps[i], low, pc);
		return base && read_blob(base, pc, ret);
	}
	return false;
}

/* ---- labels --------------------------------------------------------------------------------- */

/* Names of blobs and routines in the form that frames show. Each is made once; a slot is claimed by
 * writing the address of the JVM's name into it. */
static struct label {
	uint64_t name;
	uint32_t ready;
	char text[LABEL_BYTES];
} labels[LABEL_SLOTS];

static const char *kind_label(enum blob_kind kind)
{
	switch (kind) {
	case BLOB_INTERPRETER:
		return "[Interpreter]";
	case BLOB_STUBS:
		return "[StubRoutines]";
	case BLOB_VTABLE:
		return "[vtable stub]";
	case BLOB_ADAPTER:
		return "[I2C/C2I adapters]";
	default:
		return "[code blob]";
	}
}

static void write_label(struct label *l, uint64_t name)
{
	size_t n = 0;

	l->text[0] = '[';
	for (; n < LABEL_BYTES - 3; n++) {
		uint8_t c = load8_sig(name + n);

		if (c < ' ' || c > '~')
			break;
		l->text[n + 1] = (char)c;
	}
	l->text[n + 1] = ']';
	l->text[n + 2] = '\0';
}

const char *code_label_sig(const struct blob *b, uint64_t pc)
{
	bool routines = (b->kind == BLOB_STUBS || b->kind == BLOB_METHOD_HANDLES) &&
			pc >= b->code && pc < b->end;
	uint64_t name = routines ? stub_name_sig(pc) : 0, free_slot;

	if (!name)
		name = load64_sig(b->base + (uint32_t)vm_sig.blob_name);
	for (uint32_t i = 0; name && i < LABEL_PROBES; i++) {
		struct label *l = &labels[(name / 8 + i) % LABEL_SLOTS];

		free_slot = 0;
		if (__atomic_compare_exchange_n(&l->name, &free_slot, name, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
			write_label(l, name);
			__atomic_store_n(&l->ready, 1, __ATOMIC_RELEASE);
			return l->text;
		}
		if (free_slot == name) /* another handler is writing it: the kind is shown
					* meanwhile */
			return __atomic_load_n(&l->ready, __ATOMIC_ACQUIRE) ? l->text
									    : kind_label(b->kind);
	}
	return kind_label(b->kind);
}
