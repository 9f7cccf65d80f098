/* Counts samples, waits and allocations, and prints them if an option asks for it. See reader.h. */
#include "tests/harness/reader.h"

#include <stdio.h>
#include <string.h>

static void count(enum wire_event event, uint64_t weight)
{
	in.events[event].n++;
	in.events[event].weight += weight;
	if (in.first_sample_s == 0)
		in.first_sample_s = now_s();
}

static bool is_stack(uint32_t node)
{
	if (node < IDS_MAX && (!node || in.nodes[node].id))
		return true;
	wrong("a sample's node %u is not defined", node);
	return false;
}

/* The trace context of an event for its output line: " trace TRACE/SPAN", or "". */
static const char *in_trace(uint32_t context)
{
	static char said[sizeof(in.contexts[0]) + 8];

	if (!context)
		return "";
	if (!in.contexts[context][0])
		wrong("context %u is not defined", context);
	snprintf(said, sizeof(said), " trace %s", in.contexts[context]);
	return said;
}

/* ---- waits and allocations, a line each ---- */

static void print_stack(uint32_t node)
{
	if (!node)
		printf("-");
	for (uint32_t n = node; n; n = in.nodes[n].parent) {
		print_frame(&in.nodes[n]);
		printf(in.nodes[n].parent ? " < " : "");
	}
}

static void print_lock(const struct wire_lock *l)
{
	printf("LOCK %llu %llu tid %u %s flags %u %s@%u owner %u%s stack ",
	       (unsigned long long)l->begin_ns, (unsigned long long)l->duration_ns, l->tid,
	       wire_wait_names[l->wait], l->flags, l->class_id ? text(l->class_id) : "-",
	       l->identity, l->owner_tid, in_trace(l->context));
	print_stack(l->node);
	printf(" owner_stack ");
	print_stack(l->owner_node);
	printf("\n");
}

void on_lock(const struct wire_lock *l)
{
	if (!is_stack(l->node) || !is_stack(l->owner_node))
		return;
	if (l->class_id && !in.strings[l->class_id])
		wrong("a lock's class %u is not defined", l->class_id);
	if (l->flags & WIRE_LOCK_OPEN)
		in.opened++;
	else if (l->flags & WIRE_LOCK_CLOSED)
		in.closed++;
	else
		count(WIRE_EVENT_LOCK, l->duration_ns);
	if (opt.lines)
		print_lock(l);
}

void on_state(const struct wire_state *s)
{
	if (opt.verbose)
		printf("STATE %llu tid %u %s cpu %llu ns\n", (unsigned long long)s->mono_ns, s->tid,
		       wire_state_names[s->state], (unsigned long long)s->cpu_ns);
}

void on_virtual(const struct wire_virtual *v)
{
	if ((v->container_id && !in.strings[v->container_id]) ||
	    (v->class_id && !in.strings[v->class_id]))
		wrong("virtual threads of strings %u, %u", v->container_id, v->class_id);
	else if (opt.verbose)
		printf("VIRTUAL %llu in [%s] %s on [%s]: %u, mounted %u\n",
		       (unsigned long long)v->mono_ns, v->container_id ? text(v->container_id) : "",
		       wire_state_names[v->state], v->class_id ? text(v->class_id) : "", v->count,
		       v->mounted);
}

void on_alloc(const struct wire_alloc *a)
{
	if (!is_stack(a->node))
		return;
	if (a->class_id && !in.strings[a->class_id])
		wrong("a class %u is not defined", a->class_id);
	count(WIRE_EVENT_ALLOC, a->weight);
	if (!opt.lines)
		return;
	printf("ALLOC %llu tid %u %s size %llu weight %llu%s stack ",
	       (unsigned long long)a->mono_ns, a->tid, text(a->class_id),
	       (unsigned long long)a->size, (unsigned long long)a->weight, in_trace(a->context));
	print_stack(a->node);
	printf("\n");
}

void on_wall(const struct wire_sample *s)
{
	if (!is_stack(s->node))
		return;
	count(WIRE_EVENT_WALL, s->weight_ns);
	if (!opt.lines)
		return;
	printf("WALL %llu tid %u %llu ns%s stack ", (unsigned long long)s->mono_ns, s->tid,
	       (unsigned long long)s->weight_ns, in_trace(s->context));
	print_stack(s->node);
	printf("\n");
}

void on_offcpu(const struct wire_offcpu *o)
{
	if (!is_stack(o->node))
		return;
	if (o->class_id && !in.strings[o->class_id])
		wrong("a time off the CPU for a string %u", o->class_id);
	count(WIRE_EVENT_OFFCPU, o->weight_ns);
	if (!opt.lines)
		return;
	printf("OFFCPU %llu tid %u %llu ns %s of %s stack ", (unsigned long long)o->mono_ns, o->tid,
	       (unsigned long long)o->weight_ns, wire_offcpu_names[o->status],
	       o->class_id ? text(o->class_id) : "-");
	print_stack(o->node);
	printf("\n");
}

void on_pause(const struct wire_pause *p)
{
	if (p->operation_id && !in.strings[p->operation_id])
		wrong("a pause for a string %u", p->operation_id);
	else if (opt.lines)
		printf("PAUSE %llu number %llu %s %s %llu ns, reached after %llu ns\n",
		       (unsigned long long)p->begin_ns, (unsigned long long)p->number,
		       wire_pause_names[p->kind], p->operation_id ? text(p->operation_id) : "-",
		       (unsigned long long)p->length_ns, (unsigned long long)p->reach_ns);
}

/* ---- samples ---- */

void on_sample(const struct wire_sample *s)
{
	uint32_t root = s->node;

	if (!is_stack(s->node))
		return;
	count(WIRE_EVENT_CPU, s->weight_ns);
	if (!in.samples++ && in.first_sample_s == 0)
		in.first_sample_s = now_s();
	in.weight_ns += s->weight_ns;
	in.self_ns[s->node] += s->weight_ns;
	thread(s->tid)->weight_ns += s->weight_ns;
	while (root && in.nodes[root].parent)
		root = in.nodes[root].parent;
	if (root && in.nodes[root].kind == WIRE_KIND_SYNTHETIC) {
		if (strncmp(text(in.nodes[root].ref), "[broken:", 8) == 0)
			in.broken++;
		else
			in.booked_ns += s->weight_ns;
	}
	(void)in_trace(s->context); /* defined? */
	if (!opt.verbose)
		return;
	printf("CPU %llu.%06llu tid %u %llu ns%s ", (unsigned long long)(s->mono_ns / NS_PER_S),
	       (unsigned long long)(s->mono_ns % NS_PER_S / 1000), s->tid,
	       (unsigned long long)s->weight_ns, in_trace(s->context));
	print_stack(s->node);
	printf("\n");
}
