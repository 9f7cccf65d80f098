/*
 * The HTTP API on the Unix socket (libmicrohttpd in the one loop): what the CLI and later the web
 * page speak. docs/api.md lists the resources.
 */
#pragma once

#include "daemon/host/host.h"

struct serve;
/* Binds config->socket (0660, group `kindling` where it exists). */
int serve_new(struct host *h, struct serve **ret, struct fault *f);
struct serve *serve_free(struct serve *s); /* closes connections, removes the socket */
DEFINE_FREEP(struct serve, serve_free);
