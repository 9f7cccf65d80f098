/*
 * Reads an nmethod's debug information for a pc: the methods inlined there and their bytecode
 * indexes (debugInfo.hpp, pcDesc.hpp). A memo keeps decoded scopes by pc, because hot stacks
 * repeat. An entry is valid as long as the same compilation is at the same address.
 */
#include <stddef.h>
#include "agent/hotspot/method_priv.h"
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/java/scopes.h"

#define PC_DESC_BYTES 16
#define PC_DESCS_MAX  1000000
#define SCOPES_MAX    128 /* depth of inlining */
#define MEMO_SLOTS    1024
#define MEMO_FRAMES   6

struct memo {
	uint32_t sequence; /* odd while the entry is being written */
	uint32_t epoch; /* generation of the method copies in it */
	uint32_t compile_id;
	uint8_t n;
	bool exact, behind;
	int32_t frame_words;
	uint64_t pc, base;
	struct walk_frame frames[MEMO_FRAMES];
};

static struct memo memos[MEMO_SLOTS];
uint32_t scopes_epoch_sig;

/* ---- decoding ------------------------------------------------------------------------------- */

struct debug_info {
	uint64_t pcs, pcs_end, scopes;
};

static void find_debug_info(const struct blob *b, struct debug_info *d)
{
	uint32_t pcs = load32_sig(b->base + (uint32_t)vm_sig.nm_pcs_offset);

	if (vm_sig.nm_immutable_data >= 0) {
		uint64_t data = load64_sig(b->base + (uint32_t)vm_sig.nm_immutable_data);

		d->pcs = data + pcs;
		d->scopes = data + load32_sig(b->base + (uint32_t)vm_sig.nm_scopes_offset);
		d->pcs_end = d->scopes;
		return;
	}
	d->pcs = b->base + pcs;
	d->pcs_end = b->base + load32_sig(b->base + (uint32_t)vm_sig.nm_dependencies_offset);
	d->scopes = vm_sig.nm_scopes_begin >= 0
			    ? load64_sig(b->base + (uint32_t)vm_sig.nm_scopes_begin)
			    : b->base + load32_sig(b->base + (uint32_t)vm_sig.nm_scopes_offset);
}

/* The nmethod's table of metadata; indexes begin at 1. */
static uint64_t metadata_at(const struct blob *b, uint32_t index)
{
	uint64_t table;

	if (vm_sig.blob_mutable_data >= 0)
		table = load64_sig(b->base + (uint32_t)vm_sig.blob_mutable_data) +
			load32_sig(b->base + (uint32_t)vm_sig.blob_relocation_size);
	else if (vm_sig.nm_immutable_data >= 0) /* 23, 24 */
		table = b->base + load32_sig(b->base + (uint32_t)vm_sig.blob_data_offset) +
			load16_sig(b->base + (uint32_t)vm_sig.nm_metadata_offset);
	else
		table = b->base + load32_sig(b->base + (uint32_t)vm_sig.nm_metadata_offset);
	return load64_sig(table + 8 * (uint64_t)(index - 1));
}

/* Finds the first PcDesc at or behind the pc, because debug information is for the address after an
 * instruction. Returns its address, 0 = none. @ret_distance: 0 = it is exactly at the pc; below 0 =
 * it is the last one, before the pc, or there are only the two sentinels, as in a method that calls
 * only GC barriers. */
static uint64_t find_pc_desc(const struct debug_info *d, int32_t offset, int32_t *ret_distance)
{
	uint64_t n = (d->pcs_end - d->pcs) / PC_DESC_BYTES, low = 0, high;
	int32_t found;

	*ret_distance = d->pcs_end > d->pcs && n == 2 ? -1 : 1;
	if (d->pcs_end <= d->pcs || n <= 2 || n > PC_DESCS_MAX)
		return 0;
	for (high = n - 1; low < high;) {
		uint64_t middle = (low + high) / 2;

		if ((int32_t)load32_sig(d->pcs + PC_DESC_BYTES * middle) >= offset)
			high = middle;
		else
			low = middle + 1;
	}
	found = (int32_t)load32_sig(d->pcs + PC_DESC_BYTES * low);
	if (found == INT32_MAX && low > 1) /* the sentinel at the end: the PcDesc before it is
					    * used */
		found = (int32_t)load32_sig(d->pcs + PC_DESC_BYTES * --low);
	*ret_distance = found - offset;
	return d->pcs + PC_DESC_BYTES * low;
}

/* Pushes the scopes, innermost first, and returns their number. 0 = there is no debug
 * information. */
static uint32_t push_scopes(struct hot *h, const struct blob *b, uint64_t pc)
{
	int32_t distance;
	struct debug_info d;
	uint64_t desc;
	uint32_t at, n = 0;

	find_debug_info(b, &d);
	desc = find_pc_desc(&d, (int32_t)(pc - b->code), &distance);
	h->exact = distance == 0;
	h->behind = distance < 0;
	at = desc ? load32_sig(desc + 4) : 0;
	while (at && n < SCOPES_MAX) {
		struct unsigned5 r = { .at = d.scopes + at, .word_at = 1 };
		uint32_t sender = unsigned5_next_sig(&r);
		uint32_t index = unsigned5_next_sig(&r);
		int32_t bci = (int32_t)unsigned5_next_sig(&r) - 1;
		uint64_t method = index ? metadata_at(b, index) : 0;

		if (!method_check_sig(method))
			break;
		/* InvocationEntryBci: before the first bytecode */
		hot_push_method_sig(h, method, bci < 0 ? 0 : bci, WIRE_KIND_INLINED);
		n++;
		if (sender >= at)
			break; /* the scope of a caller is always at a lower offset */
		at = sender;
	}
	return n;
}

bool scopes_are_exact_sig(const struct blob *b, uint64_t pc)
{
	struct debug_info d;
	int32_t distance;

	find_debug_info(b, &d);
	return find_pc_desc(&d, (int32_t)(pc - b->code), &distance) && distance == 0;
}

/* ---- memo ------------------------------------------------------------------------------------ */

static struct memo *memo_of(uint64_t pc)
{
	return &memos[(pc >> 1 ^ pc >> 14) % MEMO_SLOTS];
}

static uint32_t compile_id(uint64_t base)
{
	return load32_sig(base + (uint32_t)vm_sig.nm_compile_id);
}

/* Copies the entry for @pc if it is complete and its code is still there. */
bool scopes_memo_sig(struct hot *h, uint64_t pc, struct scopes_memo *ret)
{
	struct memo *m = memo_of(pc);
	uint32_t sequence = __atomic_load_n(&m->sequence, __ATOMIC_ACQUIRE), n = m->n;
	struct walk *w = h->w;

	if (sequence & 1 || m->pc != pc || n > MEMO_FRAMES || w->n + n > WALK_FRAMES_MAX)
		return false;
	/* the id alone is not enough, because the start of a freed block keeps its words if the JVM
	 * reuses only its end */
	if (m->epoch != __atomic_load_n(&scopes_epoch_sig, __ATOMIC_RELAXED) ||
	    !code_is_used_sig(m->base) || compile_id(m->base) != m->compile_id)
		return false;
	for (uint32_t i = 0; i < n; i++)
		w->frames[w->n + i] = m->frames[i];
	*ret = (struct scopes_memo){ m->base, m->frame_words, n, m->exact, m->behind };
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&m->sequence, __ATOMIC_RELAXED) == sequence;
}

static void scopes_remember(const struct hot *h, const struct blob *b, uint64_t pc, uint32_t first)
{
	uint32_t n = h->w->n - first, sequence;
	struct memo *m = memo_of(pc);

	if (n > MEMO_FRAMES)
		return;
	for (uint32_t i = first; i < h->w->n; i++)
		if (!wire_kind_is_method(h->w->frames[i].kind))
			return; /* a method's name could not be stored */
	sequence = __atomic_load_n(&m->sequence, __ATOMIC_RELAXED);
	if (sequence & 1 || !__atomic_compare_exchange_n(&m->sequence, &sequence, sequence + 1,
							 false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	m->pc = pc;
	m->base = b->base;
	m->compile_id = compile_id(b->base);
	m->epoch = __atomic_load_n(&scopes_epoch_sig, __ATOMIC_RELAXED);
	m->frame_words = b->frame_words;
	m->exact = h->exact;
	m->behind = h->behind;
	m->n = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++)
		m->frames[i] = h->w->frames[first + i];
	__atomic_store_n(&m->sequence, sequence + 2, __ATOMIC_RELEASE);
}

/* ---- methods of a compiled frame ------------------------------------------------------------- */

static uint8_t tier_of(const struct blob *b)
{
	int8_t level = (int8_t)load8_sig(b->base + (uint32_t)vm_sig.nm_comp_level);

	return level >= 1 && level <= 3 ? WIRE_KIND_C1 : WIRE_KIND_C2;
}

void scopes_push_sig(struct hot *h, const struct blob *b, uint64_t pc)
{
	uint64_t method = load64_sig(b->base + (uint32_t)vm_sig.nm_method);
	bool in_prologue = h->leaf && (int64_t)(pc - b->code) < b->frame_complete;
	uint32_t first = h->w->n;
	struct scopes_memo memo;

	h->exact = true;
	h->behind = false;
	if (b->kind == BLOB_NATIVE_NMETHOD) {
		hot_push_method_sig(h, method, -1, WIRE_KIND_NATIVE_METHOD);
		return;
	}
	if (in_prologue) { /* no scope begins before the frame is complete */
		hot_push_method_sig(h, method, 0, tier_of(b));
		h->exact = false;
		return;
	}
	if (scopes_memo_sig(h, pc, &memo) && memo.base == b->base) {
		h->w->n += memo.n;
		h->exact = memo.exact;
		h->behind = memo.behind;
		return;
	}
	if (push_scopes(h, b, pc) == 0)
		hot_push_method_sig(h, method, -1, tier_of(b));
	else
		h->w->frames[h->w->n - 1].kind = wire_kind_is_method(h->w->frames[h->w->n - 1].kind)
							 ? tier_of(b)
							 : h->w->frames[h->w->n - 1].kind;
	scopes_remember(h, b, pc, first);
}

void scopes_forget(void)
{
	__atomic_fetch_add(&scopes_epoch_sig, 1, __ATOMIC_SEQ_CST);
}

uint64_t scopes_bytes(void)
{
	return sizeof(memos);
}
