/*
 * The HTTP API on the Unix socket (libmicrohttpd in the one loop), which the command line uses.
 * docs/api.md lists the resources.
 */
#pragma once

#include "daemon/core/config_change.h"
#include "daemon/host/host.h"

struct serve;
/* Binds config->socket (mode 0660, group `kindling` if it exists). 0, or -errno with @f set. */
int serve_new(struct host *h, struct serve **ret, struct fault *f);
/* Reads the settings again. 0 with the changes in *ret, or -errno with a sentence in @err: then
 * nothing has changed. */
typedef int serve_reload_fn(void *userdata, struct config_changes *ret, char *err, size_t err_size);
/* Sets the function behind POST /v1/settings/reload, a resource that does not exist without it. */
void serve_on_reload(struct serve *s, serve_reload_fn *reload, void *userdata);
struct serve *serve_free(struct serve *s); /* closes all connections and removes the socket */
DEFINE_FREEP(struct serve, serve_free);
