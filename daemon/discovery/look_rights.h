/* The rights that kindling-look gives up before it looks at a process. */
#pragma once

/* Afterwards the process has a uid of its own, may read any process and any file, and change
 * nothing; it can start no program, signal no process and talk only to the daemon. 0 or -errno. */
int look_give_up_rights(void);
