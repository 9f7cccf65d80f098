/* Passwords, keys and certificates named in the settings, read before rights are given up. */
#pragma once

#include "daemon/upload/sink.h"

/* 0, or -errno and a sentence with the setting and the file, but nothing of its content. */
int secrets_read(const struct config_sink *c, struct sink_secrets *ret, char *why, size_t why_size);
