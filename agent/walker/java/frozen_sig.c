/*
 * Frames of virtual threads beyond the return barrier (continuationEntry.hpp, stackChunkOop.hpp,
 * continuationFreezeThaw.cpp). The last thawed frame returns into a stub of the JVM, the barrier;
 * its real callers are in the chunks. After them comes the frame of Continuation.enterSpecial, the
 * virtual thread's root. Frames in chunks are laid out as on a stack, except that the frame
 * pointers of interpreted frames are relative.
 */
#include <stddef.h>
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/oop.h"
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/java/scopes.h"

#define ENTRY_DISTANCE	0x1000
#define CHUNKS_MAX	16
#define CHUNK_WORDS_MAX (1 << 24)
#define FRAME_WORDS_MAX 100000
/* words of the space for thawed frames that hold padding, and frames of the code that thaws */
#define SPARE_WORDS_MAX 8
/* words that a call uses on the stack before space for thawed frames is reserved */
#define CALL_WORDS_MAX	  4
#define OPERAND_WORDS_MAX 1024 /* words that are searched for an interpreted frame's fixed part */
#define THREAD_SCAN_FROM  256 /* range of offsets in a JavaThread in which _cont_entry may be */
#define THREAD_SCAN_UPTO  2400

/* ---- frames in a chunk ----------------------------------------------------------------------- */

struct frozen {
	uint64_t pc, sp, bottom, end;
	uint64_t link; /* address at which the relative fp of the frame, if interpreted, is
			* stored */
	bool link_is_gone; /* the word at @link may be overwritten */
};

static bool frozen_compiled(struct hot *h, struct frozen *f, const struct blob *b)
{
	if (b->frame_words <= 0)
		return false;
	if (code_is_nmethod(b))
		scopes_push_sig(h, b, compiled_real_pc_sig(b, f->pc, f->sp));
	else
		hot_push_stub_sig(h, b);
	f->sp += 8 * (uint64_t)b->frame_words;
	f->pc = arch_code(load64_sig(f->sp - 8));
	f->link = f->sp - 16;
	return true;
}

/* A word of the fixed part of an interpreted frame. */
static uint64_t fixed_word(uint64_t fp, int32_t words)
{
	return load64_sig(fp + 8 * (uint64_t)(int64_t)words);
}

static int32_t frozen_bci(uint64_t method, uint64_t fp)
{
	uint64_t bcp = fixed_word(fp, vm_sig.bcp_words);
	int32_t bci = method_bci_sig(method, bcp);

	return bci < 0 && bcp < UINT16_MAX ? (int32_t)bcp : bci; /* in a chunk bcp may be stored as
								  * the index */
}

/*
 * Finds the fp of the interpreted frame @f without its link: while the JVM freezes the frame that
 * @f has called, it copies that into the chunk below @f and overwrites the link. Above @f's sp are
 * its operands, then its fixed part, so the first words that look like the fixed part of a frame
 * are @f's own. 0 = none found.
 */
static uint64_t first_fp_above(const struct frozen *f)
{
	uint64_t end = f->sp + 8 * OPERAND_WORDS_MAX, size;

	for (uint64_t fp = f->sp; fp < end && fp < f->end; fp += 8) {
		size = fixed_word(fp, vm_sig.sender_sp_words);
		if (size >= 2 && size <= FRAME_WORDS_MAX &&
		    method_check_sig(fixed_word(fp, vm_sig.method_words)) &&
		    frozen_bci(fixed_word(fp, vm_sig.method_words), fp) >= 0 &&
		    code_cache_has(arch_code(load64_sig(fp + 8))))
			return fp;
	}
	return 0;
}

static bool frozen_interpreted(struct hot *h, struct frozen *f)
{
	uint64_t fp = f->link_is_gone ? first_fp_above(f) : 0, method, size;

	if (!fp)
		fp = f->link + 8 * load64_sig(f->link);
	if (fp <= f->sp || fp >= f->end)
		return false;
	method = fixed_word(fp, vm_sig.method_words);
	if (!method_check_sig(method))
		return false;
	hot_push_method_sig(h, method, frozen_bci(method, fp), WIRE_KIND_INTERPRETED);
	size = fixed_word(fp, vm_sig.sender_sp_words);
	f->pc = arch_code(load64_sig(fp + 8));
	f->sp = size >= 2 && size <= FRAME_WORDS_MAX ? fp + 8 * size : fp + 16;
	f->link = fp;
	return true;
}

/* The pc of the chunk's first frame: a field that is hidden from Java, recognised as the only word
 * before the frames that points into the code cache. 0 = none. */
static uint64_t chunk_pc(uint64_t chunk)
{
	for (uint64_t at = 8; at < (uint64_t)continuation_sig.chunk_stack; at += 8) {
		uint64_t pc = load64_sig(chunk + at);

		if (code_cache_has(pc))
			return pc;
	}
	return 0;
}

/* The end of the last frame, in bytes from the first word of the frames. */
static uint64_t chunk_bottom(uint64_t chunk)
{
	const struct continuation_layout *c = &continuation_sig;

	if (c->chunk_bottom >= 0)
		return 8 * (uint64_t)load32_sig(chunk + (uint32_t)c->chunk_bottom);
	return 8 * (uint64_t)load32_sig(chunk + (uint32_t)c->chunk_size) -
	       8 * (uint64_t)load32_sig(chunk + (uint32_t)c->chunk_argsize);
}

static bool chunk_is_empty(uint64_t chunk)
{
	return 8 * (uint64_t)load32_sig(chunk + (uint32_t)continuation_sig.chunk_sp) >=
	       chunk_bottom(chunk);
}

/* Pushes the frames of a chunk. @sp (index of a word), @pc: of the first frame. @link_is_gone: the
 * link to its fp may be overwritten. false = something is not plausible. */
static bool walk_chunk(struct hot *h, uint64_t chunk, int32_t sp, uint64_t pc, bool link_is_gone)
{
	const struct continuation_layout *c = &continuation_sig;
	int32_t size = (int32_t)load32_sig(chunk + (uint32_t)c->chunk_size);
	uint64_t stack = chunk + (uint32_t)c->chunk_stack;
	struct frozen f = { .pc = pc, .link_is_gone = link_is_gone };
	struct blob b;

	if (size <= 0 || size > CHUNK_WORDS_MAX || sp < 0 || sp > size)
		return false;
	f.end = stack + 8 * (uint64_t)size;
	f.sp = stack + 8 * (uint64_t)sp;
	f.link = f.sp - 16;
	f.bottom = stack + chunk_bottom(chunk);
	if (f.bottom > f.end)
		return false;
	while (f.sp < f.bottom && !h->broken) {
		if (continuation_is_barrier_sig(f.pc))
			return true;
		if (!code_blob_sig(f.pc, &b))
			return false;
		if (!(b.kind == BLOB_INTERPRETER ? frozen_interpreted(h, &f)
						 : frozen_compiled(h, &f, &b)))
			return false;
		f.link_is_gone = false;
	}
	return true;
}

static void push_unknown(struct hot *h)
{
	hot_push(h, (uint64_t)(uintptr_t) "[unknown]", -1, WIRE_KIND_UNKNOWN);
}

/*
 * Does the chunk already contain the frames that the thread is freezing? While it does that, they
 * are on the stack and, as soon as the chunk's sp includes them, also in the chunk. Before that
 * moment the chunk has only the frames that follow those on the stack; after it the chunk has all,
 * and its first frame is the one to which doYield returns. That frame's pc is copied with the
 * frames, while the chunk's field for it may be written a moment later; an empty chunk keeps the
 * field's last value.
 */
static bool is_frozen_by_now(const struct hot *h, uint64_t chunk)
{
	const struct continuation_layout *c = &continuation_sig;
	uint64_t sp = load32_sig(chunk + (uint32_t)c->chunk_sp);

	return h->yield_pc && !chunk_is_empty(chunk) &&
	       (chunk_pc(chunk) == h->yield_pc ||
		arch_code(load64_sig(chunk + (uint32_t)c->chunk_stack + 8 * sp - 8)) ==
			h->yield_pc);
}

/*
 * Pushes the frames that the JVM is thawing from @chunk. The JVM marks the chunk as empty first,
 * but the frames are still in it, and the size of the space that it has reserved on the stack
 * (@room_words) gives their size, with a few words of uncertainty. The right one is found because
 * the chunk's pc must also be the word below the frames.
 */
static bool walk_thawed(struct hot *h, uint64_t chunk, uint64_t room_words)
{
	uint64_t stack = chunk + (uint32_t)continuation_sig.chunk_stack, pc = chunk_pc(chunk);
	uint64_t bottom = chunk_bottom(chunk) / 8;
	uint32_t n = h->w->n;

	for (uint64_t spare = 0; pc && spare <= SPARE_WORDS_MAX && spare < room_words; spare++) {
		uint64_t sp = bottom - (room_words - spare);

		if (sp >= bottom || arch_code(load64_sig(stack + 8 * sp - 8)) != pc)
			continue;
		if (walk_chunk(h, chunk, (int32_t)sp, pc, false))
			return true;
		h->w->n = n;
	}
	return false;
}

/* @room_words: words reserved on the stack for frames that are being thawed from the first chunk; 0
 * = no frames are being thawed. */
static bool walk_chunks(struct hot *h, uint64_t first, uint64_t room_words)
{
	const struct continuation_layout *c = &continuation_sig;
	bool freezing = h->yield_pc != 0;
	uint64_t chunk = first, pc;

	if (first && room_words > CALL_WORDS_MAX && chunk_is_empty(first) && chunk_pc(first) &&
	    !walk_thawed(h, first, room_words))
		push_unknown(h);
	for (int i = 0; i < CHUNKS_MAX && chunk; i++) {
		pc = chunk_pc(chunk);
		if (i == 0 && is_frozen_by_now(h, chunk)) {
			h->w->n = h->yield_n;
			pc = h->yield_pc;
			freezing = false;
		}
		if (!walk_chunk(h, chunk, (int32_t)load32_sig(chunk + (uint32_t)c->chunk_sp), pc,
				freezing && i == 0))
			return false;
		if (oop_is_unreadable_sig(chunk + (uint32_t)c->chunk_parent))
			push_unknown(h);
		chunk = oop_load_sig(chunk + (uint32_t)c->chunk_parent);
	}
	return true;
}

/* Pushes all frames that are still in chunks. false = it has pushed none, because something changed
 * meanwhile or is unknown. */
static bool walk_frozen(struct hot *h, uint64_t entry)
{
	const struct continuation_layout *c = &continuation_sig;
	uint64_t continuation = load64_sig(entry + ENTRY_CONT), first, epoch = oop_epoch_sig(),
		 room;
	uint32_t n = h->w->n, sp;

	if (c->tail < 0 || c->chunk_parent < 0 || c->chunk_size < 0 || c->chunk_sp < 0 ||
	    c->chunk_stack < 0 || (c->chunk_bottom < 0 && c->chunk_argsize < 0) ||
	    continuation < GUARD_LOW || continuation % 8 || !epoch)
		return false;
	first = oop_load_sig(continuation + (uint32_t)c->tail);
	if (!first && oop_is_unreadable_sig(continuation + (uint32_t)c->tail))
		return false;
	sp = first ? load32_sig(first + (uint32_t)c->chunk_sp) : 0;
	/* no Java frame was met: this is native code, called by the stub that thaws frames, which
	 * has reserved space for them below the entry */
	room = !h->java_seen && entry > h->at.sp ? (entry - h->at.sp) / 8 : 0;
	if (walk_chunks(h, first, room) && oop_epoch_sig() == epoch &&
	    oop_load_sig(continuation + (uint32_t)c->tail) == first &&
	    (!first || load32_sig(first + (uint32_t)c->chunk_sp) == sp))
		return true;
	h->w->n = n;
	return false;
}

/* ---- the frame of enterSpecial --------------------------------------------------------------- */

/* The address of the ContinuationEntry, which is a part of the frame of enterSpecial. The
 * JavaThread holds it; otherwise it follows from the size of that frame and the frame pointer at
 * the barrier. */
static uint64_t find_entry(const struct hot *h)
{
	uint64_t entry = 0;

	if (continuation_sig.entry_in_thread >= 0 && h->thread)
		entry = load64_sig(h->thread + (uint32_t)continuation_sig.entry_in_thread);
	if (entry || code_places_sig.enter_special_words < 3)
		return entry;
	entry = h->at.fp - 8 * (uint64_t)(code_places_sig.enter_special_words - 2);
	if (!hot_on_stack(h, entry) || entry < h->at.sp || entry - h->at.sp > ENTRY_DISTANCE)
		entry = h->at.sp;
	return entry;
}

void continuation_learn_sig(const struct hot *h)
{
	int32_t found = -1;

	if (continuation_sig.entry_in_thread >= 0 || !h->thread)
		return;
	for (int32_t at = THREAD_SCAN_FROM; at < THREAD_SCAN_UPTO; at += 8) {
		if (load64_sig(h->thread + (uint32_t)at) != h->at.sp)
			continue;
		if (found >= 0)
			return; /* found twice: ambiguous */
		found = at;
	}
	if (found >= 0)
		__atomic_store_n(&continuation_sig.entry_in_thread, found, __ATOMIC_RELAXED);
}

bool continuation_cross_sig(struct hot *h)
{
	uint64_t entry = find_entry(h);

	virtual_identity_sig(h->thread, h->w);
	if (!entry || !hot_on_stack(h, entry) || entry < h->at.sp) {
		if (!code_places_sig.enter_special)
			__atomic_store_n(&code_places_sig.wanted, true, __ATOMIC_RELAXED);
		h->broken = "continuation";
		return false;
	}
	if (!walk_frozen(h, entry))
		push_unknown(h);
	if (code_places_sig.enter_special)
		hot_push_method_sig(
			h, load64_sig(code_places_sig.enter_special + (uint32_t)vm_sig.nm_method),
			-1, WIRE_KIND_NATIVE_METHOD);
	return false; /* the virtual thread's root; all further frames belong to the carrier */
}
