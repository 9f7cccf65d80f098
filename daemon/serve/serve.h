/*
 * The HTTP API on the Unix socket (libmicrohttpd in the one loop): what the CLI and later the web
 * page speak. docs/api.md lists the resources.
 */
#pragma once

#include "daemon/core/config_change.h"
#include "daemon/host/host.h"

struct serve;
/* Binds config->socket (0660, group `kindling` where it exists). */
int serve_new(struct host *h, struct serve **ret, struct fault *f);
/* Reads the settings again. 0 with what changed, or -errno with a sentence in @err: nothing did. */
typedef int serve_reload_fn(void *userdata, struct config_changes *ret, char *err, size_t err_size);
/* Who does it when POST /v1/settings/reload asks; without, nobody does. */
void serve_on_reload(struct serve *s, serve_reload_fn *reload, void *userdata);
struct serve *serve_free(struct serve *s); /* closes connections, removes the socket */
DEFINE_FREEP(struct serve, serve_free);
