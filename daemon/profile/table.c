/*
 * The tables of a profile. Each is an array for readers and, for writers, an open-addressing index
 * of positions in the array; entries are compared in the array. A decoded profile gets its index
 * only when an entry is looked up, because most are only read. The functions report "no room",
 * which full.c handles.
 */
#include "daemon/profile/profile_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK_BYTES  32 /* malloc's own, at most, for each string */
#define SMALL_ENTRY  64
#define LARGE_TABLE  4096 /* entries; it grows by a quarter, not to twice its size */
#define SLOTS_BYTES  16 /* of an entry in the index, at most */
#define ACCOUNTS_MAX \
	4096 /* an account's number is kept in 16 bits; further tenants share account 0 */

/* ---- hashes ---------------------------------------------------------------------------------- */

static uint64_t profile_table_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t hash_bytes(const struct profile *p, const char *s, size_t len)
{
	uint64_t h = p->index->seed ^ len * 0x9e3779b97f4a7c15ull, word;

	for (; len >= sizeof(word); s += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, s, sizeof(word));
		h = profile_table_fold(h ^ word, 0xff51afd7ed558ccdull);
	}
	word = 0;
	memcpy(&word, s, len);
	h = profile_table_fold(h ^ word, 0xc4ceb9fe1a85ec53ull);
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t hash_pair(const struct profile *p, uint32_t a, uint32_t b)
{
	uint64_t h = (((uint64_t)a << 32 | b) ^ p->index->seed) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 29) * 0xff51afd7ed558ccdull;
	return (uint32_t)(h >> 32);
}

static uint32_t hash_frame(const struct profile *p, const struct profile_frame *f)
{
	uint32_t h = hash_pair(p, f->class_name, f->method);

	h = hash_pair(p, h ^ f->module ^ f->scope << 20, (uint32_t)f->line ^ f->signature);
	return hash_pair(p, h ^ f->kind, (uint32_t)(f->offset ^ f->offset >> 32));
}

static uint32_t hash_process(const struct profile *p, const struct profile_process *q)
{
	return hash_pair(p, q->pid, (uint32_t)q->start_time);
}

static uint32_t hash_thread(const struct profile *p, const struct profile_thread *t)
{
	return hash_pair(p, t->process * 31 + t->name, t->tid);
}

static uint32_t hash_row(const struct profile *p, const struct profile_row *r)
{
	uint32_t what = (uint32_t)(r->event << 16 | r->wait << 8 | r->idle);

	return hash_pair(p, r->thread ^ what << 8 ^ r->span << 12, r->node);
}

static uint32_t hash_of_string(const struct profile *p, uint32_t i)
{
	return hash_bytes(p, p->strings[i], strlen(p->strings[i]));
}

static uint32_t hash_of_frame(const struct profile *p, uint32_t i)
{
	return hash_frame(p, &p->frames[i]);
}

static uint32_t hash_of_process(const struct profile *p, uint32_t i)
{
	return hash_process(p, &p->processes[i]);
}

static uint32_t hash_of_thread(const struct profile *p, uint32_t i)
{
	return hash_thread(p, &p->threads[i]);
}

static uint32_t hash_of_node(const struct profile *p, uint32_t i)
{
	return hash_pair(p, p->nodes[i].parent, p->nodes[i].frame);
}

static uint32_t hash_of_row(const struct profile *p, uint32_t i)
{
	return hash_row(p, &p->rows[i]);
}

static uint32_t hash_of_span(const struct profile *p, uint32_t i)
{
	return hash_pair(p, p->spans[i].trace_id, p->spans[i].span_id);
}

/* ---- growing --------------------------------------------------------------------------------- */

/* A single tenant may take everything. Of several, each may always take an equal share of one half,
 * and up to a quarter of everything as long as less than a half is taken. */
static bool profile_table_has_room(const struct profile_index *x, size_t bytes)
{
	uint32_t n = x->n_accounts > x->tenants ? x->n_accounts : x->tenants;
	size_t half = x->bytes_max / 2, own = x->accounts[x->payer].bytes + bytes;

	if (bytes > x->bytes_max || x->paid > x->bytes_max - bytes)
		return false;
	return n <= 2 || own <= half / n || (x->paid + bytes <= half && own <= half / 2);
}

static bool profile_table_pay_bytes(struct profile *p, size_t bytes)
{
	struct profile_index *x = p->index;

	if (!x->spare && !profile_table_has_room(x, bytes))
		return false;
	x->paid += bytes;
	x->accounts[x->payer].bytes += bytes;
	return true;
}

/* What an entry of @size bytes takes at most in a large table and its index, which both grow. */
static size_t profile_table_cost(size_t size)
{
	return size + size / 4 + SLOTS_BYTES;
}

static bool profile_table_pay(struct profile *p, size_t size)
{
	return profile_table_pay_bytes(p, profile_table_cost(size));
}

static bool pay_string(struct profile *p, size_t len)
{
	return profile_table_pay_bytes(p, profile_table_cost(sizeof(*p->strings)) + len +
						  BLOCK_BYTES);
}

/* Processes are named even when there is no room: the first ones always get their entries. */
static bool pay_process(struct profile *p)
{
	bool spare = p->index->spare, paid;

	p->index->spare = spare || p->n_processes < PROFILE_SPARE;
	paid = profile_table_pay(p, sizeof(*p->processes));
	p->index->spare = spare;
	return paid;
}

uint32_t profile_account(struct profile *p, uint64_t tenant)
{
	struct profile_index *x = p->index;
	uint16_t *hint = &x->account_hints[tenant % PROFILE_ACCOUNT_HINTS];
	struct profile_account *a;

	if (x->accounts[x->payer].tenant == tenant)
		return x->payer;
	if (x->accounts[*hint].tenant == tenant)
		return *hint;
	for (uint32_t i = 0; i < x->n_accounts; i++)
		if (x->accounts[i].tenant == tenant) {
			*hint = (uint16_t)i;
			return i;
		}
	a = x->n_accounts < ACCOUNTS_MAX
		    ? realloc(x->accounts, (x->n_accounts + 1) * sizeof(*x->accounts))
		    : NULL;
	if (!a)
		return 0;
	x->accounts = a;
	a[x->n_accounts] = (struct profile_account){ .tenant = tenant };
	return x->n_accounts++;
}

void profile_payer(struct profile *p, uint64_t tenant)
{
	p->index->payer = profile_account(p, tenant);
}

static bool profile_table_reserve(struct profile *p, void **array, uint32_t *cap, uint32_t n,
				  uint32_t max, size_t size)
{
	/* most profiles have one process, whose entry is large */
	uint32_t more = *cap < LARGE_TABLE ? *cap : *cap / 4;
	uint32_t want = *cap ? *cap + more : size > SMALL_ENTRY ? 2 : 64;
	void *q;

	if (n >= (p->index->spare ? max : max - PROFILE_SPARE))
		return false;
	if (n < *cap)
		return true;
	q = realloc(*array, want * size);
	if (!q)
		return false;
	p->index->bytes += (want - *cap) * size;
	*array = q;
	*cap = want;
	return true;
}

/* The slot of entry @i; see PROFILE_SLOT_BITS. */
static uint32_t profile_slot(uint32_t hash, uint32_t i)
{
	return (hash & ~((1u << PROFILE_SLOT_BITS) - 1)) | (i + 1);
}

static uint32_t profile_slot_entry(uint32_t slot)
{
	return (slot & ((1u << PROFILE_SLOT_BITS) - 1)) - 1;
}

/* May the entry of @slot have this hash? */
static bool profile_slot_fits(uint32_t slot, uint32_t hash)
{
	return (slot ^ hash) >> PROFILE_SLOT_BITS == 0;
}

typedef uint32_t hash_of_fn(const struct profile *p, uint32_t i);

/* Makes slots for @most entries in @s; @hash_of hashes the @n entries that it has. */
static bool set_reserve(struct profile *p, struct profile_set *s, uint32_t n, uint32_t most,
			hash_of_fn *hash_of)
{
	uint32_t size = s->size ? s->size : 128;
	uint32_t *slots;

	if (2 * most <= s->size)
		return true;
	while (size < 2 * most)
		size *= 2;
	slots = calloc(size, sizeof(*slots));
	if (!slots)
		return false;
	p->index->bytes += (size - s->size) * sizeof(*slots);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t hash = hash_of(p, i), at = hash & (size - 1);

		while (slots[at])
			at = (at + 1) & (size - 1);
		slots[at] = profile_slot(hash, i);
	}
	free(s->slots);
	s->slots = slots;
	s->size = size;
	return true;
}

/* Makes a slot for one more entry. */
static bool set_grow(struct profile *p, struct profile_set *s, uint32_t n, hash_of_fn *hash_of)
{
	return set_reserve(p, s, n, n + 1, hash_of);
}

static void set_add(struct profile_set *s, uint32_t hash, uint32_t i)
{
	uint32_t at = hash & (s->size - 1);

	if (!s->size)
		return; /* the profile is being decoded */
	while (s->slots[at])
		at = (at + 1) & (s->size - 1);
	s->slots[at] = profile_slot(hash, i);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

int profile_tables_init(struct profile *p, struct profile *names)
{
	p->index = calloc(1, sizeof(*p->index));
	if (!p->index)
		return -ENOMEM;
	p->index->accounts = calloc(1, sizeof(*p->index->accounts));
	if (!p->index->accounts)
		return -ENOMEM;
	p->index->n_accounts = 1;
	p->index->bytes_max = PROFILE_BYTES_MAX;
	p->index->names = names;
	(void)!getrandom(&p->index->seed, sizeof(p->index->seed), GRND_NONBLOCK);
	if (names)
		return 0;
	/* string 0 is "", node 0 is the root */
	if (!profile_table_reserve(p, (void **)&p->strings, &p->index->cap_strings, 0,
				   PROFILE_STRINGS_MAX, sizeof(*p->strings)) ||
	    !profile_table_reserve(p, (void **)&p->nodes, &p->index->cap_nodes, 0,
				   PROFILE_NODES_MAX, sizeof(*p->nodes)))
		return -ENOMEM;
	STRINGS(p)[0] = strdup("");
	if (!p->strings[0])
		return -ENOMEM;
	p->n_strings = 1;
	NODES(p)[0] = (struct profile_node){ 0, UINT32_MAX };
	p->n_nodes = 1;
	return 0;
}

/* Is string @i a block of its own? Those of a decoded profile are in one, and string 0, "", is made
 * with the tables. */
static bool is_own_text(const struct profile *p, uint32_t i)
{
	const struct profile_index *x = p->index;

	if (!x || i == 0)
		return true;
	return !x->borrows &&
	       !(x->text && (uintptr_t)p->strings[i] - (uintptr_t)x->text < x->text_max);
}

static void deinit_names(struct profile *p)
{
	for (uint32_t i = 0; i < p->n_strings; i++)
		if (is_own_text(p, i))
			free((void *)(uintptr_t)p->strings[i]);
	free((void *)(uintptr_t)p->strings);
	free((void *)(uintptr_t)p->frames);
	free((void *)(uintptr_t)p->nodes);
}

void profile_tables_deinit(struct profile *p)
{
	if (p->index && p->index->names)
		profile_free(p->index->names);
	else
		deinit_names(p);
	free((void *)(uintptr_t)p->processes);
	free((void *)(uintptr_t)p->threads);
	free((void *)(uintptr_t)p->rows);
	free((void *)(uintptr_t)p->spans);
	if (!p->index)
		return;
	profile_reported_free(&p->index->reported);
	free(p->index->text);
	free(p->index->accounts);
	free(p->index->strings.slots);
	free(p->index->frames.slots);
	free(p->index->processes.slots);
	free(p->index->threads.slots);
	free(p->index->nodes.slots);
	free(p->index->rows.slots);
	free(p->index->spans.slots);
	free(p->index);
}

/* ---- interning ------------------------------------------------------------------------------- */

/* Builds a table's index if it has none. */
#define INDEX(p, table, hash_of)                                                        \
	do {                                                                            \
		if (!(p)->index->table.size && !(p)->index->as_is)                      \
			(void)set_grow(p, &(p)->index->table, (p)->n_##table, hash_of); \
	} while (0)

/* Returns from the calling function if the index has an equal entry; @same compares entry @i
 * with it. */
#define RETURN_IF_FOUND(set, hash, i, same)                                               \
	for (uint32_t at_ = (hash) & ((set)->size - 1); (set)->size && (set)->slots[at_]; \
	     at_ = (at_ + 1) & ((set)->size - 1)) {                                       \
		uint32_t slot_ = (set)->slots[at_], i = profile_slot_entry(slot_);        \
		if (profile_slot_fits(slot_, hash) && (same))                             \
			return i;                                                         \
	}

/* Returns from the calling function what @function finds in the names that @p shares. */
#define SHARED(p, function, ...)                                           \
	do {                                                               \
		uint32_t id_ = function(profile_names_of(p), __VA_ARGS__); \
                                                                           \
		profile_names_refresh(p);                                  \
		return id_;                                                \
	} while (0)

/* Makes room for one more entry in a table and its index. */
#define RESERVE(p, table, max, hash_of)                                                           \
	(!(p)->index->find_only &&                                                                \
	 ((p)->index->as_is || ((p)->index->distinct && !(p)->index->table.size) ||               \
	  set_grow(p, &(p)->index->table, (p)->n_##table, hash_of)) &&                            \
	 profile_table_reserve(p, (void **)&(p)->table, &(p)->index->cap_##table, (p)->n_##table, \
			       max, sizeof(*(p)->table)))

/* The length of @s, cut to PROFILE_STRING_MAX between two characters. */
static size_t string_length(const char *s)
{
	size_t len = strnlen(s, PROFILE_STRING_MAX + 1);

	if (len <= PROFILE_STRING_MAX)
		return len;
	for (len = PROFILE_STRING_MAX; len > 0 && ((uint8_t)s[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

/* The length to look up and to charge. Strings that are borrowed from another profile are neither
 * looked up nor copied: their lengths would be most of the time of a copy. */
static size_t profile_table_length(const struct profile_index *x, const char *s)
{
	if (!s)
		return 0;
	return x->borrows && x->distinct && !x->strings.size ? *s != '\0' : string_length(s);
}

uint32_t profile_string(struct profile *p, const char *s)
{
	struct profile_set *set = &p->index->strings;
	size_t len = profile_table_length(p->index, s);
	uint32_t hash = 0;
	char *copy;

	if (!len)
		return 0;
	if (p->index->names)
		SHARED(p, profile_string, s);
	if (!p->index->distinct)
		INDEX(p, strings, hash_of_string);
	if (set->size)
		hash = hash_bytes(p, s, len);
	RETURN_IF_FOUND(set, hash, i, strncmp(p->strings[i], s, len) == 0 && !p->strings[i][len]);
	if (!RESERVE(p, strings, PROFILE_STRINGS_MAX, hash_of_string) ||
	    !pay_string(p, len))
		return 0;
	copy = p->index->borrows ? (char *)(uintptr_t)s : strndup(s, len);
	if (!copy)
		return 0;
	p->index->bytes += len + BLOCK_BYTES;
	STRINGS(p)[p->n_strings] = copy;
	set_add(set, hash, p->n_strings);
	return p->n_strings++;
}

int profile_text_room(struct profile *p, size_t bytes)
{
	p->index->text = malloc(bytes + 1);
	if (!p->index->text)
		return -ENOMEM;
	p->index->text_max = bytes;
	p->index->bytes += bytes;
	(void)profile_table_pay_bytes(p, bytes);
	return 0;
}

void profile_add_text(struct profile *p, const void *bytes, size_t len)
{
	struct profile_index *x = p->index;
	char *s = x->text + x->text_len;

	memcpy(s, bytes, len);
	s[len] = '\0';
	x->text_len += len + 1;
	STRINGS(p)[p->n_strings++] = s;
}

bool profile_table_room(struct profile *p, void **array, uint32_t *cap, uint32_t n, size_t size)
{
	void *q = n > *cap ? realloc(*array, n * size) : *array;

	if (n > *cap && !q)
		return false;
	if (n > *cap) {
		p->index->bytes += (n - *cap) * size;
		*array = q;
		*cap = n;
	}
	(void)profile_table_pay_bytes(p, n * profile_table_cost(size));
	return true;
}

static bool same_frame(const struct profile_frame *a, const struct profile_frame *b)
{
	return a->kind == b->kind && a->line == b->line && a->class_name == b->class_name &&
	       a->method == b->method && a->signature == b->signature && a->file == b->file &&
	       a->module == b->module && a->scope == b->scope && a->offset == b->offset;
}

uint32_t profile_intern_frame(struct profile *p, const struct profile_frame *f)
{
	struct profile_set *set = &p->index->frames;
	uint32_t hash;

	if (p->index->names)
		SHARED(p, profile_intern_frame, f);
	hash = hash_frame(p, f);
	if (!p->index->distinct)
		INDEX(p, frames, hash_of_frame);
	RETURN_IF_FOUND(set, hash, i, same_frame(&p->frames[i], f));
	if (!RESERVE(p, frames, PROFILE_NODES_MAX, hash_of_frame) ||
	    !profile_table_pay(p, sizeof(*p->frames)))
		return UINT32_MAX;
	FRAMES(p)[p->n_frames] = *f;
	set_add(set, hash, p->n_frames);
	return p->n_frames++;
}

uint32_t profile_intern_process(struct profile *p, const struct profile_process *q)
{
	struct profile_set *set = &p->index->processes;
	uint32_t hash = hash_process(p, q);

	INDEX(p, processes, hash_of_process);
	RETURN_IF_FOUND(set, hash, i,
			p->processes[i].pid == q->pid &&
				p->processes[i].start_time == q->start_time);
	return profile_append_process(p, q) ? p->n_processes - 1 : UINT32_MAX;
}

bool profile_append_process(struct profile *p, const struct profile_process *q)
{
	struct profile_process *to;

	if (!RESERVE(p, processes, PROFILE_NODES_MAX, hash_of_process) || !pay_process(p))
		return false;
	to = &PROCESSES(p)[p->n_processes];
	*to = *q;
	to->accounts = (struct profile_accounts){ 0 };
	to->cpu_ns = 0;
	set_add(&p->index->processes, hash_process(p, q), p->n_processes++);
	return true;
}

uint32_t profile_process(struct profile *p, const struct profile_process *q)
{
	uint32_t id = p->index->names ? profile_names_process(p, q) : profile_intern_process(p, q);
	struct profile_process *known;

	if (id == UINT32_MAX)
		return id;
	/* the JDK is known only after HELLO, a pod's name only when its files have been read */
	known = &PROCESSES(p)[id];
	known->ns_pid = known->ns_pid ? known->ns_pid : q->ns_pid;
	known->name = known->name ? known->name : q->name;
	known->container_id = known->container_id ? known->container_id : q->container_id;
	known->container = known->container ? known->container : q->container;
	known->pod = known->pod ? known->pod : q->pod;
	known->jdk = known->jdk ? known->jdk : q->jdk;
	known->labels = known->labels ? known->labels : q->labels;
	known->note = known->note ? known->note : q->note;
	known->tenant = known->tenant ? known->tenant : q->tenant;
	return id;
}

uint32_t profile_intern_thread(struct profile *p, const struct profile_thread *t)
{
	struct profile_set *set = &p->index->threads;
	uint32_t hash = hash_thread(p, t);

	INDEX(p, threads, hash_of_thread);
	RETURN_IF_FOUND(set, hash, i,
			p->threads[i].process == t->process && p->threads[i].tid == t->tid &&
				p->threads[i].name == t->name);
	if (!RESERVE(p, threads, PROFILE_NODES_MAX, hash_of_thread) ||
	    !profile_table_pay(p, sizeof(*p->threads)))
		return UINT32_MAX;
	THREADS(p)[p->n_threads] = *t;
	set_add(set, hash, p->n_threads);
	return p->n_threads++;
}

static bool is_node(const struct profile_node *n, uint32_t parent, uint32_t frame)
{
	return n->parent == parent && n->frame == frame;
}

uint32_t profile_intern_node(struct profile *p, uint32_t parent, uint32_t frame)
{
	struct profile_set *set = &p->index->nodes;
	uint32_t hash;

	if (p->index->names)
		SHARED(p, profile_intern_node, parent, frame);
	/* a stack's nodes were most often added one after the other */
	if (!p->index->as_is && parent + 1 < p->n_nodes &&
	    is_node(&p->nodes[parent + 1], parent, frame))
		return parent + 1;
	if (!p->index->distinct)
		INDEX(p, nodes, hash_of_node);
	hash = hash_pair(p, parent, frame);
	/* the newest node has no child: most nodes of a new stack need no lookup */
	if (parent + 1 != p->n_nodes)
		RETURN_IF_FOUND(set, hash, i, i && is_node(&p->nodes[i], parent, frame));
	if (!RESERVE(p, nodes, PROFILE_NODES_MAX, hash_of_node) ||
	    !profile_table_pay(p, sizeof(*p->nodes)))
		return UINT32_MAX;
	NODES(p)[p->n_nodes] = (struct profile_node){ parent, frame };
	set_add(set, hash, p->n_nodes);
	return p->n_nodes++;
}

static bool same_row(const struct profile_row *a, const struct profile_row *b)
{
	return a->thread == b->thread && a->node == b->node && a->event == b->event &&
	       a->wait == b->wait && a->idle == b->idle && a->span == b->span;
}

uint32_t profile_intern_row(struct profile *p, const struct profile_row *r)
{
	struct profile_set *set = &p->index->rows;
	uint32_t hash = hash_row(p, r);

	if (!p->index->distinct)
		INDEX(p, rows, hash_of_row);
	RETURN_IF_FOUND(set, hash, i, same_row(&p->rows[i], r));
	if (!RESERVE(p, rows, PROFILE_ROWS_MAX, hash_of_row) ||
	    !profile_table_pay(p, sizeof(*p->rows)))
		return UINT32_MAX;
	ROWS(p)[p->n_rows] = *r;
	ROWS(p)[p->n_rows].samples = ROWS(p)[p->n_rows].weight = 0;
	set_add(set, hash, p->n_rows);
	return p->n_rows++;
}

uint32_t profile_intern_span(struct profile *p, const struct profile_span *s)
{
	struct profile_set *set = &p->index->spans;
	uint32_t hash = hash_pair(p, s->trace_id, s->span_id);

	INDEX(p, spans, hash_of_span);
	RETURN_IF_FOUND(set, hash, i,
			p->spans[i].trace_id == s->trace_id && p->spans[i].span_id == s->span_id);
	if (!RESERVE(p, spans, PROFILE_SPANS_MAX, hash_of_span) ||
	    !profile_table_pay(p, sizeof(*p->spans)))
		return UINT32_MAX;
	SPANS(p)[p->n_spans] = *s;
	set_add(set, hash, p->n_spans);
	return p->n_spans++;
}

uint32_t profile_span(struct profile *p, const char *trace_id, const char *span_id)
{
	bool full = false;
	const struct profile_span s = { profile_text(p, trace_id, &full),
					profile_text(p, span_id, &full) };

	return full || !s.trace_id ? 0 : profile_intern_span(p, &s) + 1; /* UINT32_MAX + 1 is 0 */
}

static void set_free(struct profile *p, struct profile_set *s)
{
	p->index->bytes -= s->size * sizeof(*s->slots);
	free(s->slots);
	*s = (struct profile_set){ 0 };
}

void profile_expect(struct profile *p, const struct profile *like)
{
	struct profile_index *x = p->index;

	profile_names_refresh(like);
	if (!x->names) {
		(void)set_reserve(p, &x->strings, p->n_strings, like->n_strings + 1,
				  hash_of_string);
		(void)set_reserve(p, &x->frames, p->n_frames, like->n_frames + 1, hash_of_frame);
		(void)set_reserve(p, &x->nodes, p->n_nodes, like->n_nodes + 1, hash_of_node);
	}
	(void)set_reserve(p, &x->threads, p->n_threads, like->n_threads + 1, hash_of_thread);
	(void)set_reserve(p, &x->rows, p->n_rows, like->n_rows + 1, hash_of_row);
	if (like->n_spans)
		(void)set_reserve(p, &x->spans, p->n_spans, like->n_spans + 1, hash_of_span);
}

void profile_settle(struct profile *p)
{
	struct profile_index *x = p->index;

	set_free(p, &x->strings);
	set_free(p, &x->frames);
	set_free(p, &x->processes);
	set_free(p, &x->threads);
	set_free(p, &x->nodes);
	set_free(p, &x->rows);
	set_free(p, &x->spans);
	profile_reported_free(&x->reported); /* a closed window has no more slices */
}

/* Builds the index of the frames again; false = two of them are equal. */
bool profile_index_frames(struct profile *p)
{
	struct profile_set *set = &p->index->frames;
	bool distinct = true;

	set_free(p, set);
	p->index->spare = true;
	(void)set_grow(p, set, p->n_frames, hash_of_frame);
	p->index->spare = false;
	for (uint32_t i = 0; i < p->n_frames && set->size; i++) {
		uint32_t at = hash_of_frame(p, i) & (set->size - 1);

		for (; set->slots[at]; at = (at + 1) & (set->size - 1))
			distinct &= profile_slot_entry(set->slots[at]) == i ||
				    !same_frame(&p->frames[i],
						&p->frames[profile_slot_entry(set->slots[at])]);
	}
	return distinct;
}
