/*
 * See locks_priv.h: the methods of the application in which threads waited for a lock, or had it.
 * Of a stack one method counts: the first one from the leaf that is not the JDK's. The stack of the
 * longest wait there is kept, too, until the stream's next RESET.
 */
#include "daemon/locks/locks_priv.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 256 /* frames that are searched, from the leaf on */
#define NAME_MAX  512

static bool sites_is_of_the_jdk(const char *class_name)
{
	static const char *const prefixes[] = { "java.", "jdk.", "sun." };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(class_name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void sites_put_name(const struct stream_frame *f, char *buf)
{
	snprintf(buf, NAME_MAX, "%s.%s", f->class_name, f->method);
}

/* Writes "org.shop.Main.sell": the application's method, else the JDK's; "" = there is no Java
 * frame. */
static void application_frame(const struct stream *s, uint32_t node, char *buf)
{
	struct stream_frame f;
	uint32_t parent;

	buf[0] = '\0';
	for (int i = 0; i < DEPTH_MAX && stream_node(s, node, &f, &parent); i++, node = parent) {
		if (!wire_kind_is_method(f.kind) || !f.class_name[0])
			continue;
		if (!sites_is_of_the_jdk(f.class_name)) {
			sites_put_name(&f, buf);
			return;
		}
		if (!buf[0])
			sites_put_name(&f, buf);
	}
}

uint32_t sites_frame(struct sites *p, const struct stream *s, uint32_t node)
{
	uint32_t at = node % SITES_CACHE;
	char name[NAME_MAX];

	if (!node || !s)
		return 0;
	if (!p->cache)
		p->cache = calloc(SITES_CACHE, sizeof(*p->cache));
	if (!p->cache) {
		application_frame(s, node, name);
		return classes_number(&p->names, name);
	}
	if (p->cache[at].node != node) {
		application_frame(s, node, name);
		p->cache[at].frame = classes_number(&p->names, name);
		p->cache[at].node = node;
	}
	return p->cache[at].frame;
}

const char *sites_name(const struct sites *p, uint32_t frame)
{
	return frame == CLASSES_OTHER ? "[other methods]" : classes_name(&p->names, frame);
}

void sites_forget_nodes(struct sites *p)
{
	free(p->cache);
	p->cache = NULL;
}

void sites_deinit(struct sites *p)
{
	sites_forget_nodes(p);
	classes_deinit(&p->names);
}

/* ---- the methods of one row ------------------------------------------------------------------ */

static uint32_t sites_add_us(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

void site_set_add(struct site_set *s, const struct site *p)
{
	struct site *least = s->sites;

	if (!p->frame)
		return;
	for (struct site *q = s->sites; q < s->sites + LOCKS_SITES; q++) {
		if (q->frame == p->frame) {
			q->us = sites_add_us(q->us, p->us);
			if (p->node && (!q->node || p->longest_us > q->longest_us)) {
				q->node = p->node;
				q->longest_us = p->longest_us;
			}
			return;
		}
		if (q->us < least->us)
			least = q;
	}
	/* without room the one with more time stays */
	if (!least->frame || least->us < p->us)
		*least = *p;
}

void site_set_join(struct site_set *to, const struct site_set *from)
{
	for (uint32_t i = 0; i < LOCKS_SITES; i++)
		site_set_add(to, &from->sites[i]);
}

void site_set_forget_nodes(struct site_set *s)
{
	for (uint32_t i = 0; i < LOCKS_SITES; i++)
		s->sites[i].node = s->sites[i].longest_us = 0;
}
