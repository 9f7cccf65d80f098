/*
 * Sends log lines to journald with fields, by its native protocol
 * (systemd.io/JOURNAL_NATIVE_PROTOCOL). Known keys of key=value become fields, so `journalctl
 * KINDLING_PID=4711` finds everything about a JVM.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Connects; call it before rights are dropped. 0, or -errno: then lines still go to stderr. */
int journal_open(const char *path);
void journal_close(void);
/*
 * Sends one line, "event key=value key=\"...\"", without its newline; never waits. false: the
 * journal is not open or has no room, and the caller must write the line itself.
 */
bool journal_send(int priority, const char *line);
/* Writes a line as the fields that are sent. Returns the length, 0 if @size is too small. Pure. */
size_t journal_fields(int priority, const char *line, char *buf, size_t size);
