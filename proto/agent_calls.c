/* See agent_calls.h. */
#include "proto/agent_calls.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

const struct agent_call agent_calls[] = {
	{ SYS_timer_create, "timer_create", { 0 } },
	{ SYS_timer_settime, "timer_settime", { 0 } },
	{ SYS_timer_delete, "timer_delete", { 0 } },
	{ SYS_process_vm_readv, "process_vm_readv", { 0 } },
	{ SYS_tgkill, "tgkill", { 0 } },
	{ SYS_eventfd2, "eventfd2", { 0 } },
	{ SYS_pipe2, "pipe2", { 0 } },
	{ SYS_getdents64, "getdents64", { 0 } },
	{ SYS_prctl, "prctl", { PR_SET_NAME } },
	{ SYS_prctl, "prctl", { PR_GET_NAME } },
};
const size_t agent_call_count = sizeof(agent_calls) / sizeof(agent_calls[0]);
