/* See lock_name.h. */
#include "agent/events/lock_name.h"

#include <string.h>

/* Parts of classes of java.util.concurrent, JDK 8 to 28. */
static const struct {
	const char *name;
	bool for_each_wait;
} parts[] = {
	{ "java/util/concurrent/CompletableFuture$Signaller", true },
	{ "java/util/concurrent/Phaser$QNode", true },
	{ "java/util/concurrent/SynchronousQueue$TransferStack", false },
	{ "java/util/concurrent/SynchronousQueue$TransferQueue", false },
	{ "java/util/concurrent/SynchronousQueue$Transferer", false },
};

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), len = strlen(end);

	return n >= len && strcmp(text + n - len, end) == 0;
}

bool lock_name(const char *class_name, char *ret, size_t size)
{
	const char *dollar = strrchr(class_name, '$');
	size_t n = strlen(class_name);
	bool lasting = true;

	/* "Outer$Sync": the way in which everybody uses AbstractQueuedSynchronizer */
	if (dollar && dollar > class_name && ends_with(dollar, "Sync"))
		n = (size_t)(dollar - class_name);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(class_name, parts[i].name) != 0)
			continue;
		n = (size_t)(dollar - class_name);
		lasting = !parts[i].for_each_wait;
	}
	if (n >= size)
		n = size - 1;
	memcpy(ret, class_name, n);
	ret[n] = '\0';
	return lasting;
}
