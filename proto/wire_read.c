/* See wire.h: reads frames. Every length is checked before it is used. */
#include "proto/wire_priv.h"

#include <errno.h>
#include <string.h>

static int64_t wire_read_unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static uint64_t get_le(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

int wire_peek(const void *buf, size_t len, struct wire_frame *ret)
{
	const uint8_t *p = buf;
	uint32_t size;

	if (len < WIRE_HDR_SIZE)
		return 0;
	size = (uint32_t)get_le(p, 4);
	if (size < WIRE_HDR_SIZE || size > WIRE_FRAME_MAX || p[4] == 0 || p[5] || p[6] || p[7])
		return -EBADMSG;
	if (len < size)
		return 0;
	ret->type = p[4];
	ret->sequence = get_le(p + 8, 8);
	ret->body = p + WIRE_HDR_SIZE;
	ret->body_len = size - WIRE_HDR_SIZE;
	return (int)size;
}

static int get_u64(struct wire_reader *r, uint64_t *ret)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64 && r->p < r->end; shift += 7) {
		uint8_t b = *r->p++;

		if (shift == 63 && b > 1)
			return -EBADMSG;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

static int get_max(struct wire_reader *r, uint64_t max, uint32_t *ret)
{
	uint64_t v;

	if (get_u64(r, &v) || v > max)
		return -EBADMSG;
	*ret = (uint32_t)v;
	return 0;
}

static int get_id(struct wire_reader *r, uint32_t *ret)
{
	return get_max(r, WIRE_ID_MAX - 1, ret);
}

static int get_new_id(struct wire_reader *r, uint32_t *ret)
{
	return get_id(r, ret) || *ret == 0 ? -EBADMSG : 0;
}

static int get_bytes(struct wire_reader *r, uint32_t max, struct wire_str *ret)
{
	uint32_t len;

	if (get_max(r, max, &len) || len > (size_t)(r->end - r->p))
		return -EBADMSG;
	ret->p = (const char *)r->p;
	ret->len = len;
	r->p += len;
	return 0;
}

static int get_str(struct wire_reader *r, struct wire_str *ret)
{
	return get_bytes(r, WIRE_STRING_MAX, ret);
}

void wire_read(struct wire_reader *r, const struct wire_frame *f)
{
	r->p = f->body;
	r->end = f->body + f->body_len;
	r->last_ns = 0;
	r->started = false;
}

int wire_next_string(struct wire_reader *r, struct wire_string *ret)
{
	if (r->p == r->end)
		return 0;
	return get_new_id(r, &ret->id) || get_str(r, &ret->str) ? -EBADMSG : 1;
}

int wire_next_method(struct wire_reader *r, struct wire_method *ret)
{
	if (r->p == r->end)
		return 0;
	if (get_new_id(r, &ret->id) || get_id(r, &ret->class_id) || get_id(r, &ret->name_id) ||
	    get_id(r, &ret->sig_id) || get_id(r, &ret->file_id))
		return -EBADMSG;
	return 1;
}

int wire_next_mapping(struct wire_reader *r, struct wire_mapping *ret)
{
	struct wire_str id;

	if (r->p == r->end)
		return 0;
	if (get_new_id(r, &ret->id) || get_u64(r, &ret->start) || get_u64(r, &ret->end) ||
	    get_u64(r, &ret->file_offset) || get_id(r, &ret->path_id) ||
	    get_bytes(r, WIRE_BUILD_ID_MAX, &id))
		return -EBADMSG;
	if (ret->start >= ret->end)
		return -EBADMSG;
	memset(ret->build_id, 0, sizeof(ret->build_id));
	if (id.len)
		memcpy(ret->build_id, id.p, id.len);
	ret->build_id_len = (uint8_t)id.len;
	return 1;
}

int wire_next_node(struct wire_reader *r, struct wire_node *ret)
{
	uint64_t line;
	uint32_t kind;

	if (r->p == r->end)
		return 0;
	if (get_new_id(r, &ret->id) || get_id(r, &ret->parent) ||
	    get_max(r, WIRE_KIND_COUNT - 1, &kind) || get_id(r, &ret->ref))
		return -EBADMSG;
	ret->kind = (uint8_t)kind;
	ret->line = -1;
	ret->offset = 0;
	if (wire_kind_is_method(kind)) {
		if (get_u64(r, &line) || wire_read_unzigzag(line) < -1 ||
		    wire_read_unzigzag(line) > WIRE_LINE_MAX)
			return -EBADMSG;
		ret->line = (int32_t)wire_read_unzigzag(line);
	} else if (kind == WIRE_KIND_NATIVE && get_u64(r, &ret->offset)) {
		return -EBADMSG;
	}
	return 1;
}

int wire_next_thread(struct wire_reader *r, struct wire_thread *ret)
{
	if (r->p == r->end)
		return 0;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_max(r, UINT32_MAX, &ret->flags) ||
	    get_u64(r, &ret->java_id) || get_str(r, &ret->name))
		return -EBADMSG;
	return 1;
}

static int get_context(struct wire_reader *r, uint32_t *ret)
{
	return get_max(r, WIRE_CONTEXT_MAX - 1, ret);
}

int wire_next_context(struct wire_reader *r, struct wire_context *ret)
{
	if (r->p == r->end)
		return 0;
	if (get_context(r, &ret->id) || !ret->id || get_bytes(r, WIRE_TRACE_MAX, &ret->trace_id) ||
	    !ret->trace_id.len || get_bytes(r, WIRE_TRACE_MAX, &ret->span_id))
		return -EBADMSG;
	return 1;
}

/* 1 with the time of the next record, 0 at the end. */
static int get_time(struct wire_reader *r, uint64_t *ret)
{
	uint64_t delta;

	if (r->p == r->end)
		return 0;
	if (!r->started) {
		if (get_u64(r, &r->last_ns))
			return -EBADMSG;
		r->started = true;
		if (r->p == r->end)
			return 0;
	}
	if (get_u64(r, &delta))
		return -EBADMSG;
	r->last_ns += (uint64_t)wire_read_unzigzag(delta);
	*ret = r->last_ns;
	return 1;
}

/* Reads a member whose lowest bit says whether a context follows: sets *ret_context to that bit. */
static int get_flagged(struct wire_reader *r, uint64_t max, uint64_t *ret, uint32_t *ret_context)
{
	if (get_u64(r, ret))
		return -EBADMSG;
	*ret_context = *ret & 1;
	*ret >>= 1;
	return *ret <= max ? 0 : -EBADMSG;
}

static int get_context_if(struct wire_reader *r, uint32_t *context)
{
	return *context && (get_context(r, context) || !*context) ? -EBADMSG : 0;
}

int wire_next_sample(struct wire_reader *r, struct wire_sample *ret)
{
	int more = get_time(r, &ret->mono_ns);

	if (more <= 0)
		return more;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_id(r, &ret->node) ||
	    get_flagged(r, WIRE_WEIGHT_MAX, &ret->weight_ns, &ret->context) ||
	    get_context_if(r, &ret->context))
		return -EBADMSG;
	return 1;
}

int wire_next_lock(struct wire_reader *r, struct wire_lock *ret)
{
	int more = get_time(r, &ret->begin_ns);
	uint32_t wait;
	uint64_t flags;

	if (more <= 0)
		return more;
	if (get_u64(r, &ret->duration_ns) || get_max(r, UINT32_MAX, &ret->tid) ||
	    get_max(r, WIRE_WAIT_COUNT - 1, &wait) ||
	    get_flagged(r, UINT8_MAX, &flags, &ret->context) || get_id(r, &ret->class_id) ||
	    get_max(r, UINT32_MAX, &ret->identity) || get_max(r, UINT32_MAX, &ret->owner_tid) ||
	    get_id(r, &ret->node) || get_id(r, &ret->owner_node))
		return -EBADMSG;
	ret->wait = (uint8_t)wait;
	ret->flags = (uint8_t)flags;
	ret->waits = 1;
	if (flags & WIRE_LOCK_SUM && (get_max(r, UINT32_MAX, &ret->waits) || !ret->waits))
		return -EBADMSG;
	return get_context_if(r, &ret->context) ? -EBADMSG : 1;
}

int wire_next_alloc(struct wire_reader *r, struct wire_alloc *ret)
{
	int more = get_time(r, &ret->mono_ns);

	if (more <= 0)
		return more;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_id(r, &ret->node) ||
	    get_id(r, &ret->class_id) || get_u64(r, &ret->size) ||
	    get_flagged(r, WIRE_WEIGHT_MAX, &ret->weight, &ret->context) ||
	    get_context_if(r, &ret->context))
		return -EBADMSG;
	return 1;
}

int wire_next_offcpu(struct wire_reader *r, struct wire_offcpu *ret)
{
	int more = get_time(r, &ret->mono_ns);
	uint64_t status;

	if (more <= 0)
		return more;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_max(r, UINT32_MAX, &ret->virtual_tid) ||
	    get_id(r, &ret->node) || get_u64(r, &ret->weight_ns) ||
	    get_flagged(r, WIRE_OFFCPU_STATUS_COUNT - 1, &status, &ret->context) ||
	    get_context_if(r, &ret->context))
		return -EBADMSG;
	ret->status = (uint8_t)status;
	ret->class_id = ret->identity = 0;
	if (status == WIRE_OFFCPU_UNMOUNTED &&
	    (get_id(r, &ret->class_id) || get_max(r, UINT32_MAX, &ret->identity)))
		return -EBADMSG;
	return 1;
}

int wire_next_state(struct wire_reader *r, struct wire_state *ret)
{
	int more = get_time(r, &ret->mono_ns);
	uint32_t state, status;

	if (more <= 0)
		return more;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_max(r, WIRE_STATE_COUNT - 1, &state) ||
	    get_max(r, WIRE_OFFCPU_STATUS_COUNT - 1, &status) ||
	    get_u64(r, &ret->cpu_ns) || get_max(r, UINT32_MAX, &ret->span_us))
		return -EBADMSG;
	ret->state = (uint8_t)state;
	ret->status = (uint8_t)status;
	for (unsigned i = 0; i < WIRE_WAIT_COUNT; i++) {
		ret->short_us[i] = 0;
		if (ret->span_us && get_max(r, UINT32_MAX, &ret->short_us[i]))
			return -EBADMSG;
	}
	return 1;
}

int wire_next_virtual(struct wire_reader *r, struct wire_virtual *ret)
{
	int more = get_time(r, &ret->mono_ns);
	uint32_t state;

	if (more <= 0)
		return more;
	if (get_id(r, &ret->container_id) || get_id(r, &ret->class_id) ||
	    get_max(r, WIRE_STATE_COUNT - 1, &state) || get_max(r, UINT32_MAX, &ret->count) ||
	    get_max(r, ret->count, &ret->mounted))
		return -EBADMSG;
	ret->state = (uint8_t)state;
	return 1;
}

int wire_next_pause(struct wire_reader *r, struct wire_pause *ret)
{
	int more = get_time(r, &ret->begin_ns);
	uint32_t kind;

	if (more <= 0)
		return more;
	if (get_u64(r, &ret->reach_ns) || get_u64(r, &ret->length_ns) || get_u64(r, &ret->number) ||
	    get_max(r, WIRE_PAUSE_KIND_COUNT - 1, &kind) || get_id(r, &ret->operation_id) ||
	    ret->reach_ns > ret->length_ns)
		return -EBADMSG;
	ret->kind = (uint8_t)kind;
	return 1;
}

/* A (key, length, bytes) record; u64 values are a varint that fills the bytes exactly. */
static int get_key(struct wire_reader *r, uint64_t *ret_key, struct wire_str *ret)
{
	if (r->p == r->end)
		return 0;
	return get_u64(r, ret_key) || get_str(r, ret) ? -EBADMSG : 1;
}

static int value_u64(struct wire_str s, uint64_t *ret)
{
	struct wire_reader r = {
		.p = (const uint8_t *)s.p,
		.end = (const uint8_t *)s.p + s.len,
	};

	return get_u64(&r, ret) || r.p != r.end ? -EBADMSG : 0;
}

int wire_get_hello(const struct wire_frame *f, struct wire_hello *ret)
{
	struct wire_reader r;
	struct wire_str v;
	uint64_t key;
	int more;

	memset(ret, 0, sizeof(*ret));
	wire_read(&r, f);
	while ((more = get_key(&r, &key, &v)) > 0) {
		struct wire_str *str = NULL;
		uint64_t *num = NULL;

		switch (key) {
		case HELLO_PROTOCOL:
			num = &ret->protocol;
			break;
		case HELLO_AGENT_VERSION:
			str = &ret->agent_version;
			break;
		case HELLO_AGENT_HASH:
			str = &ret->agent_hash;
			break;
		case HELLO_JVM_VENDOR:
			str = &ret->jvm_vendor;
			break;
		case HELLO_JVM_VERSION:
			str = &ret->jvm_version;
			break;
		case HELLO_JVM_NAME:
			str = &ret->jvm_name;
			break;
		case HELLO_LIBC:
			str = &ret->libc;
			break;
		case HELLO_ENGINE:
			str = &ret->engine;
			break;
		case HELLO_WALKER:
			str = &ret->walker;
			break;
		case HELLO_NOTE:
			str = &ret->note;
			break;
		case HELLO_NS_PID:
			num = &ret->ns_pid;
			break;
		case HELLO_INTERVAL_NS:
			num = &ret->interval_ns;
			break;
		case HELLO_MONO_NS:
			num = &ret->mono_ns;
			break;
		case HELLO_REAL_NS:
			num = &ret->real_ns;
			break;
		case HELLO_TICK_NS:
			num = &ret->tick_ns;
			break;
		case HELLO_SESSION:
			num = &ret->session;
			break;
		case HELLO_SECRET:
			str = &ret->secret;
			break;
		default:
			break; /* a key of a newer agent is skipped */
		}
		if (str)
			*str = v;
		if (num && value_u64(v, num))
			return -EBADMSG;
	}
	return more < 0 || ret->protocol == 0 ? -EBADMSG : 0;
}

int wire_get_ledger(const struct wire_frame *f, struct wire_ledger *ret)
{
	struct wire_reader r;

	memset(ret, 0, sizeof(*ret));
	wire_read(&r, f);
	while (r.p != r.end) {
		uint64_t key, v;

		if (get_u64(&r, &key) || get_u64(&r, &v))
			return -EBADMSG;
		if (key < WIRE_COUNTER_COUNT)
			ret->counter[key] = v;
		else if (key >= WIRE_KEY_ACCOUNTS &&
			 key < WIRE_KEY_ACCOUNTS + 64 * WIRE_EVENT_COUNT &&
			 key % 64 < WIRE_ACCOUNTS_WORDS)
			((uint64_t *)&ret->accounts[(key - WIRE_KEY_ACCOUNTS) / 64])[key % 64] = v;
		else if (key >= WIRE_KEY_PART_BASE && key < WIRE_KEY_PART_BASE + WIRE_PART_COUNT)
			ret->part[key - WIRE_KEY_PART_BASE] = v;
		else if (key >= WIRE_KEY_TIME_BASE && key < WIRE_KEY_TIME_BASE + WIRE_TIME_COUNT)
			ret->time[key - WIRE_KEY_TIME_BASE] = v;
	}
	return 0;
}

int wire_get_fault(const struct wire_frame *f, struct wire_fault *ret)
{
	struct wire_reader r;

	wire_read(&r, f);
	if (get_max(&r, UINT32_MAX, &ret->code) || get_str(&r, &ret->step) ||
	    get_str(&r, &ret->what))
		return -EBADMSG;
	return 0;
}

int wire_get_start(const struct wire_frame *f, struct wire_start *ret)
{
	struct wire_reader r;
	struct wire_str v;
	uint64_t key;
	int more;

	memset(ret, 0, sizeof(*ret));
	wire_read(&r, f);
	while ((more = get_key(&r, &key, &v)) > 0) {
		uint64_t *num = NULL;

		switch (key) {
		case START_PROTOCOL:
			num = &ret->protocol;
			break;
		case START_INTERVAL_NS:
			num = &ret->interval_ns;
			break;
		case START_FLAGS:
			num = &ret->flags;
			break;
		case START_MAX_CPU:
			num = &ret->max_cpu_permille;
			break;
		case START_RING_BYTES:
			num = &ret->ring_bytes;
			break;
		case START_SESSION:
			num = &ret->session;
			break;
		case START_EVENTS:
			num = &ret->events;
			break;
		case START_LOCK_MIN_NS:
			num = &ret->lock_min_ns;
			break;
		case START_MONITORS:
			num = &ret->monitors;
			break;
		case START_ALLOC_INTERVAL:
			num = &ret->alloc_interval;
			break;
		case START_WALL_INTERVAL_NS:
			num = &ret->wall_interval_ns;
			break;
		case START_WALL_THREADS:
			ret->wall_threads = v;
			break;
		case START_SECRET:
			ret->secret = v;
			break;
		case START_TRACE:
			num = &ret->trace;
			break;
		case START_MDC_KEYS:
			ret->mdc_keys = v;
			break;
		case START_VIRTUAL_MIN_NS:
			num = &ret->virtual_min_ns;
			break;
		case START_IDLE:
			ret->idle = v;
			break;
		default:
			break;
		}
		if (num && value_u64(v, num))
			return -EBADMSG;
	}
	return more < 0 || ret->protocol == 0 ? -EBADMSG : 0;
}
