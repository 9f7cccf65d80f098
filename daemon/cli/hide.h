/*
 * What a report for strangers must not contain: names of JVMs, containers, pods, services, images
 * and labels, and any text between quotes. No text passes because it looks harmless: in JSON and
 * log lines only keys on a list keep their text.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#define HIDE_WORDS_MAX 4096

struct hide {
	char *words[HIDE_WORDS_MAX]; /* each becomes name-1, name-2 ... everywhere */
	unsigned n;
};

/* Collects the names in an answer of kindlingd or of doctor. */
void hide_learn(struct hide *h, const cJSON *json);
/* In place: removes texts of unknown keys, replaces names by numbers. */
void hide_json(const struct hide *h, cJSON *json);
/* A sentence: replaces names by numbers, removes text between quotes. */
void hide_text(const struct hide *h, FILE *to, const char *s);
/* Lines of the log, "event key=value ...". */
void hide_log(const struct hide *h, FILE *to, const char *lines);
/* Text of /metrics: values of labels that are names. */
void hide_metrics(FILE *to, const char *text);
void hide_deinit(struct hide *h);
