/*
 * Whose a process is when shares are counted: its container, outside of containers its user. Every
 * bound that many share is kept fair between tenants.
 */
#pragma once

#include <stdint.h>

#define TENANT_SIZE 72

/* "<container id>" or "uid-1000", in @buf; it may be part of a file's name. @container_id may be
 * NULL or "". */
const char *tenant_name(char buf[TENANT_SIZE], const char *container_id, uint32_t uid);
/* The same as a number to be stored in files; never 0, which means no tenant. */
uint64_t tenant_number(const char *name);
