/*
 * Recordings that kindling-upload asks for, because a server asked it: begun on the target, ended
 * after their time, their profiles handed over as files without a name. A wish is said again every
 * second; one that is not ends, so that no JVM is sampled at length for a program that has died.
 */
#pragma once

#include "daemon/host/host.h"
#include "daemon/upload/upload_message.h"

#define WANTED_MAX 32 /* at once: they share limits.memory once more */

struct wanted;

/* @answer goes to whoever asked, with @fd unless it is -1; borrowed. @userdata is that of
 * wanted_new(). */
typedef void wanted_answer_fn(void *userdata, const struct upload_recorded *answer, int fd);

/* 0 or -ENOMEM. */
int wanted_new(struct host *h, wanted_answer_fn *answer, void *userdata, struct wanted **ret);
/* Ends all of them. */
struct wanted *wanted_free(struct wanted *w);
/* @ask: of another process, not believed. Answered by @answer, once, now. */
void wanted_ask(struct wanted *w, const struct upload_record *ask);
void wanted_on_second(struct wanted *w);
