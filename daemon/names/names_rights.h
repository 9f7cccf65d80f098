/* The rights that kindling-names gives up before it reads any data: afterwards it has an account of
 * its own, no capabilities, and only system calls that read, or send to NAMES_FD. 0 or -errno. */
#pragma once

int names_give_up_rights(void);
