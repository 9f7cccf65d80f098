/* For kindling-names, before it reads a byte: an account of its own, no capabilities, and system
 * calls that read, or send to NAMES_FD. 0 or -errno. */
#pragma once

int names_give_up_rights(void);
