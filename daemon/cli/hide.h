/*
 * Keeps out of a report what strangers must not read: names of JVMs, containers, pods, services,
 * images and labels, and all text between quotes. Text does not pass for looking harmless: in JSON
 * and log lines only the keys of a list keep theirs.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>
#include "daemon/report/json_out.h"

#define HIDE_WORDS_MAX 4096

struct hide {
	char *words[HIDE_WORDS_MAX]; /* each is replaced by name-1, name-2 ... wherever it occurs */
	unsigned n;
};

/* Collects the names in an answer of kindlingd or of kindling doctor. */
void hide_learn(struct hide *h, const cJSON *json);
/* Writes @json without the text of unknown keys, and with numbers for names. */
void hide_json(const struct hide *h, struct text_out *to, const cJSON *json);
/* Writes a sentence with names replaced by numbers and without text between quotes. */
void hide_text(const struct hide *h, FILE *to, const char *s);
/* Writes lines of the log, "event key=value ...", without what must be hidden. */
void hide_log(const struct hide *h, FILE *to, const char *lines);
/* Writes the text of /metrics without the values of those labels that are names. */
void hide_metrics(FILE *to, const char *text);
void hide_deinit(struct hide *h);
