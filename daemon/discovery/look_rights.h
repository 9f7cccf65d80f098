/* What kindling-look gives up before it looks at a process. */
#pragma once

/* It is a user of its own then, may read what any process and any file holds, and change nothing;
 * it can start no program, signal no process and speak to nobody but the daemon. 0 or -errno. */
int look_give_up_rights(void);
