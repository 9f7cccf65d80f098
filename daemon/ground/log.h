/*
 * The log: one line per state change or fault on stderr, `event key=value ...`. If journald reads
 * stderr, lines have fields (journal.h) or the syslog priority in front, `<6>event ...`
 * (sd-daemon(3)).
 */
#pragma once

#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7
};

/* If stderr is journald's, lines have fields from now on. Call it before rights are dropped. */
void log_to_journal(void);
void log_set_level(enum log_level level);
bool log_wanted(enum log_level level); /* are lines of @level written? */
/*
 * @event: short word with dots, "target.state"
 * @fmt:   "key=value key=value", or NULL. Values with spaces or from outside need log_str()
 */
void log_line(enum log_level level, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Quotes a text for a log line: "..." with control bytes escaped, cut at 200 bytes. Returns one of
 * 4 static buffers, which are used in turn; main thread only. */
const char *log_str(const char *s);

#define log_err(...)   log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
