/* Passwords, keys and certificates that the settings name, read while there are the rights to. */
#pragma once

#include "daemon/upload/sink.h"

/* 0, or -errno and a sentence that names the setting and the file, and nothing of what is in it. */
int secrets_read(const struct config_sink *c, struct sink_secrets *ret, char *why, size_t why_size);
