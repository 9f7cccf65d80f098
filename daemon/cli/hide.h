/*
 * What a report for strangers must not say: names of JVMs, containers, pods, services, images and
 * labels, and whatever a text has between quotes. Nothing is let through because it looks harmless:
 * of JSON and of log lines only keys that are on a list keep their text.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#define HIDE_WORDS_MAX 4096

struct hide {
	char *words[HIDE_WORDS_MAX]; /* each is name-1, name-2 ... wherever it stands */
	unsigned n;
};

/* Takes over the names in an answer of kindlingd or of doctor. */
void hide_learn(struct hide *h, const cJSON *json);
/* In place: texts of unknown keys go, names become numbers. */
void hide_json(const struct hide *h, cJSON *json);
/* A sentence: names become numbers, what stands between quotes goes. */
void hide_text(const struct hide *h, FILE *to, const char *s);
/* Lines of the log, "event key=value ...". */
void hide_log(const struct hide *h, FILE *to, const char *lines);
/* Text of /metrics: values of labels that name something. */
void hide_metrics(FILE *to, const char *text);
void hide_deinit(struct hide *h);
