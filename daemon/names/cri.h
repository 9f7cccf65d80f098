/*
 * Reads what a message of the container runtime (CRI, runtime.v1) contains about one container or
 * pod. Owners of pods choose most of the texts, so none is trusted. Pure; fuzzed by
 * tests/fuzz/fuzz_names.c.
 */
#pragma once

#include "daemon/names/names_message.h"

/* Reads @message, the answer to @what, into @ret, which is zeroed at first: sets result, sandbox
 * and jvm. */
void cri_read(enum warden_names what, const uint8_t *message, size_t len, struct names_answer *ret);
