/* Answers of a SkyWalking OAP: the parsed tasks are within their bounds, and their texts are
 * terminated. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/upload/skywalking_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skywalking_task tasks[SKYWALKING_TASKS_MAX];
	enum skywalking_verdict verdict;
	struct skywalking_task t = { 0 };
	char *text = calloc(1, size + 1);
	int n = skywalking_tasks(data, size, -1, tasks);

	assert(n <= SKYWALKING_TASKS_MAX);
	for (int i = 0; i < n; i++) {
		assert(memchr(tasks[i].id, '\0', sizeof(tasks[i].id)) && tasks[i].id[0]);
		assert(tasks[i].seconds <= SKYWALKING_SECONDS_MAX);
	}
	(void)skywalking_answer(data, size, &verdict);
	if (size)
		memcpy(text, data, size);
	skywalking_arguments(text, &t);
	free(text);
	return 0;
}
