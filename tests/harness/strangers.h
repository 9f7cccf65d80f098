/* The parts of strangers: what a hostile agent can say (strangers_voice.c), and in which manners
 * (strangers_manners.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/wire.h"

#define IDS	 2000u /* of names, methods, nodes, threads */
#define DEPTH	 4000u
#define CONTEXTS 4095u

extern uint64_t strangers_seed; /* of strangers_any() */
uint32_t strangers_any(uint32_t below);
uint64_t strangers_now_ns(void);
void strangers_pause_ms(long ms);

struct voice {
	struct wire_writer w;
	uint8_t buf[WIRE_FRAME_MAX];
	uint64_t sequence, session;
	uint8_t secret[WIRE_SECRET_BYTES];
	struct wire_ledger ledger;
	uint32_t epoch;
	int fd;
	bool changes; /* some bits of some frames */
};

/* Puts something into a frame, or into another one if there is no room. */
#define VOICE_PUT(v, type, put)               \
	do {                                  \
		if (!(put)) {                 \
			voice_say(v);         \
			voice_begin(v, type); \
			(void)(put);          \
		}                             \
	} while (0)

/* Begins a frame; voice_say() ends it, and the process when nobody reads any more: its parent
 * begins another one. */
void voice_begin(struct voice *v, enum wire_type type);
void voice_say(struct voice *v);
void voice_greet(struct voice *v);
void voice_define_methods(struct voice *v);
void voice_define(struct voice *v);
void voice_samples(struct voice *v, enum wire_type type, enum wire_event event, uint32_t n);
void voice_times_off(struct voice *v, uint32_t n);
void voice_locks(struct voice *v, uint32_t n, uint32_t flags);
void voice_new_contexts(struct voice *v);
void voice_states(struct voice *v);
void voice_allocations(struct voice *v, uint32_t n);
void voice_account(struct voice *v);
void voice_reset(struct voice *v);
void voice_complain(struct voice *v, enum wire_type type);

/* A way of speaking for ever, and the number of agents that have it. */
struct strangers_manner {
	const char *name;
	void (*speak)(struct voice *v);
	int n;
};
extern const struct strangers_manner strangers_manners[];
extern const size_t strangers_n_manners;
