/*
 * The stacks whose rows the server has: a row of them need not be sent again, and most stacks of
 * one interval were in the interval before. A stack is known by a key, which is cheaper to have
 * than its number: see rows.c. Pure memory, bounded by SENT_MAX: more stacks are sent each time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"

#define SENT_MAX (1u << 16)

struct clickhouse_sent;

int clickhouse_sent_new(struct clickhouse_sent **ret); /* 0 or -ENOMEM */
struct clickhouse_sent *clickhouse_sent_free(struct clickhouse_sent *s); /* NULL is allowed */
DEFINE_FREEP(struct clickhouse_sent, clickhouse_sent_free);
/* Combines two hashes into a key. It holds only in this set, because it depends on random bits. */
uint64_t clickhouse_sent_pair(const struct clickhouse_sent *s, uint64_t a, uint64_t b);
/* The server has all rows of the stacks that were added so far. */
void clickhouse_sent_confirm(struct clickhouse_sent *s);
/* It may lack any of them. */
void clickhouse_sent_forget(struct clickhouse_sent *s);
/* Does the server have the stack's row? Then *ret is its number. */
bool clickhouse_sent_find(const struct clickhouse_sent *s, uint64_t key, uint64_t *ret);
/* A row of this stack is being sent; without room it is not remembered. */
void clickhouse_sent_add(struct clickhouse_sent *s, uint64_t key, uint64_t number);
