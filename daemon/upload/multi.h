/*
 * libcurl's multi interface in the one loop: transfers proceed while the loop does other things. A
 * sender embeds a multi_transfer, sets up its easy handle and passes it in.
 */
#pragma once

#include <curl/curl.h>
#include "daemon/core/loop.h"

struct multi;
int multi_new(struct loop *loop, struct multi **ret); /* 0 or -errno */
struct multi *multi_free(struct multi *m); /* after all transfers; returns NULL */
struct loop *multi_loop(const struct multi *m);

struct multi_transfer {
	CURL *easy; /* the caller's, with CURLOPT_PRIVATE taken */
	/* Called once, never inside another call of curl's: may remove and free transfers,
	 * including its own. */
	void (*done)(struct multi_transfer *t, CURLcode code);
};

/* Adds @t. 0 or -ENOMEM. */
int multi_add(struct multi *m, struct multi_transfer *t);
/* Stops it without done(); allowed after done(). Not from inside a callback of curl's. */
void multi_remove(struct multi *m, struct multi_transfer *t);
