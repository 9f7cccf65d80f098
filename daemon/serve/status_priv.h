/*
 * What status.c and status_offcpu.c share.
 */
#pragma once

#include "daemon/serve/serve_priv.h"

/* Adds {"step":...,"what":...} to the list of a JVM's notes. */
void status_put_note(struct text_out *to, const char *step, const char *what);

/* Adds the members of a JVM's "offcpu" that other events lack; @counter: of its ledger. */
void status_put_offcpu_of(struct text_out *to, struct host *h, const struct target *t,
			  const uint64_t *counter);
/* Adds a note for each kind of times off the CPU of @t that is missing, or has no Java stack. */
void status_put_offcpu_notes(struct text_out *to, struct host *h, const struct target *t);
/* Adds the object "offcpu", with the state of the engine. */
void status_put_offcpu(struct text_out *to, struct host *h);
