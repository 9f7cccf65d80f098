/*
 * Recordings that kindling-upload asks for because a server asked it: they are started on the
 * target, ended after their time, and their profiles handed over as files without a name. A request
 * is repeated every second; without it the recording ends, so that no JVM is sampled for long on
 * behalf of a program that has died.
 */
#pragma once

#include "daemon/host/host.h"
#include "daemon/upload/upload_message.h"

#define WANTED_MAX 32 /* most at once: they share as much memory as limits.memory allows */

struct wanted;

/* @answer goes to the sender of the request, with @fd unless it is -1; borrowed. @userdata is that
 * of wanted_new(). */
typedef void wanted_answer_fn(void *userdata, const struct upload_recorded *answer, int fd);

/* 0 or -ENOMEM. */
int wanted_new(struct host *h, wanted_answer_fn *answer, void *userdata, struct wanted **ret);
/* Ends all of them. */
struct wanted *wanted_free(struct wanted *w);
/* @ask: from another process, not trusted. Answered by @answer, once, during the call. */
void wanted_ask(struct wanted *w, const struct upload_record *ask);
void wanted_on_second(struct wanted *w);
