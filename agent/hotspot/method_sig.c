/* See method.h. */
#include "agent/hotspot/method_priv.h"

#include <stddef.h>
#include "agent/base/guard.h"
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/layout.h"

#define NAME_MAX_BYTES	1000 /* longer names are cut */
#define SYMBOL_MAX	4000 /* a plausible class name is shorter */
#define LINES_MAX_BYTES 2048
#define PROBES		8
#define CP_ENTRY	8
#define MIRROR_TRIES	3

struct method_store *method_store_sig;

/* ---- numbers as HotSpot packs them ----------------------------------------------------------- */

uint8_t unsigned5_byte_sig(struct unsigned5 *r)
{
	uint64_t word_at = r->at & ~7ull;

	if (word_at != r->word_at) {
		r->word = guard_word_sig(word_at);
		r->word_at = word_at;
	}
	return (uint8_t)(r->word >> (r->at++ & 7) * 8);
}

uint32_t unsigned5_next_sig(struct unsigned5 *r)
{
	uint32_t excluded = vm_sig.unsigned5_excluded, sum = 0;

	for (uint32_t i = 0; i < 5; i++) {
		uint8_t byte = unsigned5_byte_sig(r);

		sum += (byte - excluded) << (6 * i);
		if (byte < 192)
			break;
	}
	return sum;
}

/* ---- is a word a Method pointer? ------------------------------------------------------------- */

static bool is_pointer(uint64_t p)
{
	return p >= GUARD_LOW && p <= GUARD_HIGH && p % 8 == 0;
}

struct method_parts {
	uint64_t const_method, pool, holder, class_name;
};

static bool is_class_name(uint64_t symbol)
{
	uint32_t len;

	if (symbol < GUARD_LOW || symbol % 2)
		return false;
	len = load16_sig(symbol + (uint32_t)vm_sig.symbol_length);
	return len > 0 && len < SYMBOL_MAX &&
	       load8_sig(symbol + (uint32_t)vm_sig.symbol_body) > ' ';
}

static bool find_parts(uint64_t method, struct method_parts *p)
{
	if (!is_pointer(method))
		return false;
	p->const_method = load64_sig(method + (uint32_t)vm_sig.method_const);
	if (!is_pointer(p->const_method))
		return false;
	p->pool = load64_sig(p->const_method + (uint32_t)vm_sig.const_pool);
	if (!is_pointer(p->pool))
		return false;
	p->holder = load64_sig(p->pool + (uint32_t)vm_sig.pool_holder);
	if (!is_pointer(p->holder))
		return false;
	p->class_name = load64_sig(p->holder + (uint32_t)vm_sig.klass_name);
	return is_class_name(p->class_name);
}

static uint64_t *method_slot_of(struct method_store *s, uint64_t key, uint32_t i)
{
	uint32_t hash = (uint32_t)((key >> 3) * 0x9e3779b97f4a7c15ull >> 40);

	return &s->slots[(hash + i) % STORE_SLOTS];
}

/* Does the copy still describe the method that is now at its address? */
static bool is_current(const struct method_copy *c)
{
	if (!c->pool) /* of a class */
		return load64_sig(c->method + (uint32_t)vm_sig.klass_name) == c->const_method;
	return load64_sig(c->method + (uint32_t)vm_sig.method_const) == c->const_method &&
	       load64_sig(c->const_method + (uint32_t)vm_sig.const_pool) == c->pool;
}

static struct method_copy *copy_in(const uint64_t *slot)
{
	return (struct method_copy *)(uintptr_t)__atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

static const struct method_copy *find_copy(struct method_store *s, uint64_t method)
{
	for (uint32_t i = 0; s && i < PROBES; i++) {
		const struct method_copy *c = copy_in(method_slot_of(s, method, i));

		if (!c)
			return NULL;
		if (c->method == method && is_current(c))
			return c;
	}
	return NULL;
}

bool method_check_sig(uint64_t method)
{
	struct method_store *s = __atomic_load_n(&method_store_sig, __ATOMIC_ACQUIRE);
	struct method_parts parts;

	return is_pointer(method) && (find_copy(s, method) || find_parts(method, &parts));
}

int32_t method_bci_sig(uint64_t method, uint64_t bcp)
{
	uint64_t const_method = load64_sig(method + (uint32_t)vm_sig.method_const);
	uint64_t begin = const_method + (uint32_t)vm_sig.const_size;
	uint32_t size = load16_sig(const_method + (uint32_t)vm_sig.const_code_size);

	return bcp >= begin && bcp < begin + size ? (int32_t)(bcp - begin) : -1;
}

/* ---- copying --------------------------------------------------------------------------------- */

static uint64_t pool_symbol(uint64_t pool, uint32_t index)
{
	return index ? load64_sig(pool + (uint32_t)vm_sig.pool_size + (uint64_t)index * CP_ENTRY)
		     : 0;
}

static bool symbol_is(uint64_t symbol, const char *text)
{
	uint32_t len = load16_sig(symbol + (uint32_t)vm_sig.symbol_length), n = 0;
	uint64_t body = symbol + (uint32_t)vm_sig.symbol_body;

	for (; text[n]; n++)
		if (n >= len || load8_sig(body + n) != (uint8_t)text[n])
			return false;
	return n == len;
}

bool method_is_sig(uint64_t method, const char *class_name, const char *name)
{
	struct method_parts p;

	return find_parts(method, &p) && symbol_is(p.class_name, class_name) &&
	       symbol_is(pool_symbol(p.pool,
				     load16_sig(p.const_method + (uint32_t)vm_sig.const_name)),
			 name);
}

static uint64_t source_file(const struct method_parts *p)
{
	uint32_t index = 0;

	if (vm_sig.pool_source_file >= 0)
		index = load16_sig(p->pool + (uint32_t)vm_sig.pool_source_file);
	else if (vm_sig.klass_source_file >= 0)
		index = load16_sig(p->holder + (uint32_t)vm_sig.klass_source_file);
	return pool_symbol(p->pool, index);
}

/* The length in bytes of the line table, which follows the bytecodes
 * (CompressedLineNumberReadStream); 0 = too long. */
static uint32_t lines_length(uint64_t begin)
{
	struct unsigned5 r = { .at = begin, .word_at = 1 };

	while (r.at - begin < LINES_MAX_BYTES) {
		uint8_t byte = unsigned5_byte_sig(&r);

		if (byte == 0)
			return (uint32_t)(r.at - begin);
		if (byte == 0xff) {
			(void)unsigned5_next_sig(&r);
			(void)unsigned5_next_sig(&r);
		}
	}
	return 0; /* too long to keep: lines are unknown */
}

enum { TEXT_CLASS, TEXT_NAME, TEXT_SIGNATURE, TEXT_FILE, TEXTS };

struct shape {
	uint64_t symbols[TEXTS];
	uint16_t lengths[TEXTS];
	uint64_t lines;
	uint32_t lines_len, code_len;
};

static uint16_t symbol_cut(uint64_t symbol)
{
	uint32_t len = symbol ? load16_sig(symbol + (uint32_t)vm_sig.symbol_length) : 0;

	return (uint16_t)(len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES);
}

static void find_shape(const struct method_parts *p, struct shape *s)
{
	uint64_t c = p->const_method;

	s->symbols[TEXT_CLASS] = p->class_name;
	s->symbols[TEXT_NAME] = pool_symbol(p->pool, load16_sig(c + (uint32_t)vm_sig.const_name));
	s->symbols[TEXT_SIGNATURE] =
		pool_symbol(p->pool, load16_sig(c + (uint32_t)vm_sig.const_signature));
	s->symbols[TEXT_FILE] = source_file(p);
	for (int i = 0; i < TEXTS; i++)
		s->lengths[i] = symbol_cut(s->symbols[i]);
	s->code_len = load16_sig(c + (uint32_t)vm_sig.const_code_size);
	s->lines = c + (uint32_t)vm_sig.const_size + s->code_len;
	s->lines_len = 0;
	if (vm_sig.const_flags >= 0 &&
	    load16_sig(c + (uint32_t)vm_sig.const_flags) & vm_sig.has_line_table)
		s->lines_len = lines_length(s->lines);
}

static struct method_copy *method_allocate(struct method_store *s, const struct shape *shape)
{
	uint32_t bytes = sizeof(struct method_copy) + TEXTS + shape->lines_len, at;

	for (int i = 0; i < TEXTS; i++)
		bytes += shape->lengths[i];
	bytes = (bytes + 7) & ~7u;
	at = __atomic_load_n(&s->used, __ATOMIC_RELAXED);
	do {
		if (at + bytes > METHOD_STORE_BYTES / 8 * 7) /* the last eighth is a reserve until
							      * the writer begins a new epoch */
			__atomic_store_n(&s->full, 1, __ATOMIC_RELAXED);
		if (at + bytes > METHOD_STORE_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&s->used, &at, at + bytes, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return (struct method_copy *)(void *)(s->copies + at);
}

static void method_fill(struct method_copy *c, uint64_t method, const struct method_parts *p,
			const struct shape *shape)
{
	char *to = c->text;

	c->method = method;
	c->const_method = p->const_method;
	c->pool = p->pool;
	c->class_len = shape->lengths[TEXT_CLASS];
	c->name_len = shape->lengths[TEXT_NAME];
	c->signature_len = shape->lengths[TEXT_SIGNATURE];
	c->file_len = shape->lengths[TEXT_FILE];
	c->code_len = (uint16_t)shape->code_len;
	c->lines_len = (uint16_t)shape->lines_len;
	for (int i = 0; i < TEXTS; i++) {
		guard_copy_sig(to, shape->symbols[i] + (uint32_t)vm_sig.symbol_body,
			       shape->lengths[i]);
		to += shape->lengths[i];
		*to++ = '\0';
	}
	guard_copy_sig(to, shape->lines, shape->lines_len);
}

/* Stores it in the hash table: in a free slot, or in that of an unloaded method. If two handlers do
 * so at once, their copies are equal, and either may be returned. */
static void method_publish(struct method_store *s, struct method_copy *c)
{
	uint64_t *slot = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		const struct method_copy *there;

		slot = method_slot_of(s, c->method, i);
		there = copy_in(slot);
		if (!there || there->method == c->method)
			break;
	}
	__atomic_store_n(slot, (uint64_t)(uintptr_t)c, __ATOMIC_RELEASE);
}

const struct method_copy *method_copy_sig(uint64_t method)
{
	struct method_store *s = __atomic_load_n(&method_store_sig, __ATOMIC_ACQUIRE);
	const struct method_copy *known;
	struct method_parts parts;
	struct method_copy *c;
	struct shape shape;

	if (!s || !is_pointer(method))
		return NULL;
	known = find_copy(s, method);
	if (known)
		return known;
	if (!find_parts(method, &parts))
		return NULL;
	find_shape(&parts, &shape);
	c = method_allocate(s, &shape);
	if (!c)
		return NULL;
	method_fill(c, method, &parts, &shape);
	method_publish(s, c);
	return c;
}

/* Tries again if a collection runs meanwhile: the mirror of another class may have moved to where
 * this one was, even before the reference is updated. A concurrent collector moves it between
 * pauses, too: then the reference leads elsewhere. */
uint64_t klass_of_mirror_sig(void *jclass_ref)
{
	uint64_t handle = (uint64_t)(uintptr_t)jclass_ref;

	for (int i = 0; i < MIRROR_TRIES && vm_sig.mirror_klass >= 0; i++) {
		uint64_t epoch = oop_epoch_sig(), mirror = oop_of_handle_sig(handle), klass;

		klass = load64_sig(mirror + (uint32_t)vm_sig.mirror_klass);
		if (mirror != oop_of_handle_sig(handle) || !is_pointer(klass) ||
		    !is_class_name(load64_sig(klass + (uint32_t)vm_sig.klass_name)))
			continue;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (epoch && oop_epoch_sig() == epoch)
			return klass;
	}
	return 0;
}

/* A class is stored like a method that has only a class name. The name's Symbol shows later whether
 * the Klass is still the same class. */
const struct method_copy *class_copy_sig(uint64_t klass)
{
	struct method_store *s = __atomic_load_n(&method_store_sig, __ATOMIC_ACQUIRE);
	struct method_parts parts = { 0 };
	const struct method_copy *known;
	struct shape shape = { 0 };
	struct method_copy *c;

	if (!s || !is_pointer(klass))
		return NULL;
	known = find_copy(s, klass);
	if (known)
		return known;
	parts.const_method = load64_sig(klass + (uint32_t)vm_sig.klass_name);
	if (!is_class_name(parts.const_method))
		return NULL;
	shape.symbols[TEXT_CLASS] = parts.const_method;
	shape.lengths[TEXT_CLASS] = symbol_cut(parts.const_method);
	c = method_allocate(s, &shape);
	if (!c)
		return NULL;
	method_fill(c, klass, &parts, &shape);
	method_publish(s, c);
	return c;
}

static bool class_is_sig(uint64_t handle, const char *name, size_t n)
{
	const struct method_copy *c = (const struct method_copy *)(uintptr_t)handle;

	if (!c || c->class_len != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (c->text[i] != name[i])
			return false;
	return true;
}

bool class_is_mirror_sig(uint64_t handle)
{
	static const char name[] = "java/lang/Class";

	return class_is_sig(handle, name, sizeof(name) - 1);
}

bool class_is_int_array_sig(uint64_t handle)
{
	return class_is_sig(handle, "[I", 2);
}

uint64_t class_of_object_sig(uint64_t object, uint64_t klass)
{
	uint64_t handle = (uint64_t)(uintptr_t)class_copy_sig(klass), itself = 0;

	if (class_is_mirror_sig(handle) && vm_sig.mirror_klass >= 0)
		itself = (uint64_t)(uintptr_t)class_copy_sig(
			load64_sig(object + (uint32_t)vm_sig.mirror_klass));
	else if (class_is_int_array_sig(handle) && continuation_sig.array_length > 0 &&
		 !load32_sig(object + (uint32_t)continuation_sig.array_length))
		return handle | CLASS_INIT_LOCK;
	return itself ? itself | CLASS_ITSELF : handle;
}
