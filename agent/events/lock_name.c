/* See lock_name.h. */
#include "agent/events/lock_name.h"

#include <stdbool.h>
#include <string.h>

/* Inner classes of java.util.concurrent that threads park on, JDK 8 to 28. */
static const char *const parts[] = {
	"java/util/concurrent/CompletableFuture$Signaller",
	"java/util/concurrent/Phaser$QNode",
	"java/util/concurrent/SynchronousQueue$TransferStack",
	"java/util/concurrent/SynchronousQueue$TransferQueue",
	"java/util/concurrent/SynchronousQueue$Transferer",
};

static bool is_part(const char *class_name, const char *dollar)
{
	size_t n = strlen(dollar);

	/* "Outer$Sync": the usual name of a class that extends AbstractQueuedSynchronizer */
	if (n > 4 && strcmp(dollar + n - 4, "Sync") == 0)
		return true;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcmp(class_name, parts[i]) == 0)
			return true;
	return false;
}

void lock_name(const char *class_name, char *ret, size_t size)
{
	const char *dollar = strrchr(class_name, '$');
	size_t n = strlen(class_name);

	if (dollar && dollar > class_name && is_part(class_name, dollar))
		n = (size_t)(dollar - class_name);
	if (n >= size)
		n = size - 1;
	memcpy(ret, class_name, n);
	ret[n] = '\0';
}
