/*
 * The tenant of a process: its container, or outside of containers its user. A uid that is
 * delegated to a user (subuids.h) belongs to that user: otherwise a user's rootless containers
 * would be thousands of tenants. Everything that is limited and shared by all is divided fairly
 * between tenants.
 */
#pragma once

#include <stdint.h>

#define TENANT_SIZE 72
#define TENANT_ROOT "uid-0" /* root of the host, outside of containers */

/* Writes "<container id>", or "uid-1000" if @container_id is NULL or "", with the uid of the user,
 * into @buf, which it returns. The name can be part of a file's name. */
const char *tenant_name(char buf[TENANT_SIZE], const char *container_id, uint32_t uid);
/* A hash of the name, to be stored in files; never 0, which means no tenant. */
uint64_t tenant_number(const char *name);
