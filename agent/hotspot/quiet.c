/* See quiet.h. */
#include "agent/hotspot/quiet.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "agent/hotspot/libjvm.h"

#define WAS_SET_ON_COMMAND_LINE (1u << 17) /* JVMFlag::Flags, the same since JDK 16 */

static uint32_t *marked; /* the flag word that was changed; NULL = none */

static uint32_t *find_flag(const char *wanted)
{
	const char *const *flags = libjvm_static("JVMFlag", "flags");
	const size_t *n = libjvm_static("JVMFlag", "numFlags");
	long name_at = libjvm_offset("JVMFlag", "_name");
	long flags_at = libjvm_offset("JVMFlag", "_flags");
	size_t size = libjvm_type_size("JVMFlag");

	if (!flags || !*flags || !n || *n > 10000 || name_at < 0 || flags_at < 0 || !size)
		return NULL;
	for (size_t i = 0; i < *n; i++) {
		const char *flag = *flags + i * size;
		const char *name = *(const char *const *)(flag + name_at);

		if (name && strcmp(name, wanted) == 0)
			return (uint32_t *)(flag + flags_at);
	}
	return NULL;
}

void quiet_begin(const char *library)
{
	const int *major = libjvm_static("Abstract_VM_Version", "_vm_major_version");
	uint32_t *word;

	/* before JDK 21 nothing is printed, and the bit may have another meaning */
	if (!major || *major < 21 || strstr(library, "-loud"))
		return;
	word = find_flag("EnableDynamicAgentLoading");
	if (word && !(*word & WAS_SET_ON_COMMAND_LINE)) {
		*word |= WAS_SET_ON_COMMAND_LINE;
		marked = word;
	}
}

void quiet_end(void)
{
	if (marked)
		*marked &= ~WAS_SET_ON_COMMAND_LINE;
	marked = NULL;
}
