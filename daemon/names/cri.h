/*
 * What a message of the container runtime (CRI, runtime.v1) says about one container or pod. Owners
 * of pods chose most of its texts. Pure; fuzzed by tests/fuzz/fuzz_names.c.
 */
#pragma once

#include "daemon/names/names_message.h"

/* Reads the answer to a question about @what into @ret: result, sandbox, jvm. */
void cri_read(enum warden_names what, const uint8_t *message, size_t len, struct names_answer *ret);
