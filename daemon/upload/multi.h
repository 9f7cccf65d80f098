/*
 * libcurl's multi interface in the loop: transfers proceed beside everything else. A sender embeds
 * a multi_transfer, sets up its easy handle and adds it.
 */
#pragma once

#include <curl/curl.h>
#include "daemon/core/loop.h"

struct multi;
int multi_new(struct loop *loop, struct multi **ret); /* 0 or -errno */
struct multi *multi_free(struct multi *m); /* all transfers must have ended; returns NULL */
struct loop *multi_loop(const struct multi *m);

struct multi_transfer {
	CURL *easy; /* the caller's; its CURLOPT_PRIVATE is used here */
	/* Called once, never from within a call of curl: it may remove and free transfers, its
	 * own included. */
	void (*done)(struct multi_transfer *t, CURLcode code);
};

/* Starts @t. 0 or -ENOMEM. */
int multi_add(struct multi *m, struct multi_transfer *t);
/* Stops @t without calling done(); allowed after done(), but not in a callback of curl. */
void multi_remove(struct multi *m, struct multi_transfer *t);
