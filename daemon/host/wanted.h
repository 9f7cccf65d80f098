/*
 * Recordings that kindling-upload asks for on behalf of a server. They are started on the target,
 * end after their time, and their profiles are handed over as files without names. The request must
 * be repeated every second; otherwise the recording ends, so that no JVM is sampled for long on
 * behalf of a program that has died.
 */
#pragma once

#include "daemon/host/host.h"
#include "daemon/upload/upload_message.h"

#define WANTED_MAX 32 /* recordings at a time; they share the memory of limits.memory */

struct wanted;

/* Sends @answer, borrowed, to whom asked, with @fd unless it is -1. @userdata: see wanted_new(). */
typedef void wanted_answer_fn(void *userdata, const struct upload_recorded *answer, int fd);

/* 0 or -ENOMEM. */
int wanted_new(struct host *h, wanted_answer_fn *answer, void *userdata, struct wanted **ret);
/* Ends all recordings. */
struct wanted *wanted_free(struct wanted *w);
/* Handles a request of another process, which is not trusted. Calls @answer once before it
 * returns. */
void wanted_ask(struct wanted *w, const struct upload_record *ask);
void wanted_on_second(struct wanted *w);
