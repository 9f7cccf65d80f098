/*
 * What the service manager is told, sd_notify(3), by way of the warden: that the daemon is ready,
 * that its loop turns, and a line for `systemctl status` with how many JVMs are profiled. Without a
 * service manager nothing is done.
 */
#pragma once

#include "daemon/core/loop.h"
#include "daemon/host/host.h"

struct notify;

/* warden_settings.tell: says it, in the process that was started. Bits of WARDEN_TELL_*; @status
 * may be NULL. */
void notify_report(unsigned what, const char *status);

/* Begins with the watchdog, where there is one. 0 or -errno. @loop and @host are borrowed. */
int notify_new(struct loop *loop, struct host *host, struct notify **ret);
struct notify *notify_free(struct notify *n);
DEFINE_FREEP(struct notify, notify_free);

void notify_ready(struct notify *n);
void notify_stopping(void);
void notify_reloading(void);
/* @error: why the old settings stay in force; systemd shows it until the next reload. NULL = the
 * new ones are in force. */
void notify_reloaded(struct notify *n, const char *error);
