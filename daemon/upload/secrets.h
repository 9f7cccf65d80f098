/* Passwords, keys and certificates named in the settings, read before rights are given up. */
#pragma once

#include "daemon/upload/sink.h"

/* Reads what the settings name. 0, or -errno and a sentence that names setting and file, but
 * nothing of the content. */
int secrets_read(const struct config_sink *c, struct sink_secrets *ret, char *why, size_t why_size);
/* Has a file that secrets_read() has read changed since, or been replaced? It needs no rights, and
 * does not wait for a file system. */
bool secrets_have_changed(void);
