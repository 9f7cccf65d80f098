#include "tests/unit/unit.h"
#include <errno.h>
#include "daemon/ground/clock.h"
#include "daemon/upload/skywalking_words.h"
#include "proto/wire.h"
#include "skywalking.pb-c.h"

#define CPU   (1u << WIRE_EVENT_CPU)
#define LOCK  (1u << WIRE_EVENT_LOCK)
#define ALLOC (1u << WIRE_EVENT_ALLOC)
#define WALL  (1u << WIRE_EVENT_WALL)

static struct skywalking_task asked(const char *arguments)
{
	struct skywalking_task t = { 0 };

	skywalking_arguments(arguments, &t);
	return t;
}

static void arguments_say_events_and_intervals(void **state)
{
	(void)state;
	assert_int_equal(asked("event=cpu").events, CPU);
	assert_int_equal(asked("event=cpu,lock,alloc").events, CPU | LOCK | ALLOC);
	assert_int_equal(asked("event=wall,alloc=2k,interval=5ms,").events, WALL | ALLOC);
	assert_int_equal(asked("event=ctimer,interval=5ms").interval_ns, 5 * NS_PER_MS);
	assert_int_equal(asked("event=itimer,interval=250us").interval_ns, 250000);
	assert_int_equal(asked("event=cpu,lock=2s").lock_min_ns, 2 * NS_PER_S);
	assert_int_equal(asked("event=alloc,alloc=2k").alloc_interval, 2048);
	assert_int_equal(asked("event=alloc,alloc=1M,interval=5ms").alloc_interval, 1 << 20);
	assert_int_equal(asked("event=cpu,alloc=x").alloc_interval, 0);
	assert_int_equal(asked("event=cpu,alloc=512").events, CPU | ALLOC);
	assert_int_equal(asked("event=wall,interval=20ms").wall_interval_ns, 20 * NS_PER_MS);
	assert_int_equal(asked("event=cpu,wall,interval=20ms").wall_interval_ns, 0);
	assert_int_equal(asked("event=cpu,wall=30ms,").wall_interval_ns, 30 * NS_PER_MS);
	assert_int_equal(asked("event=cpu,interval=99999999999s").interval_ns, 0);
	assert_int_equal(asked("event=cpu,cstack=vm,cpux").events, CPU);
	assert_string_equal(asked("event=cpu").why, "");
	assert_string_not_equal(asked("event=page-faults").why, "");
	assert_string_not_equal(asked("").why, "");
}

static int tasks_of(const char *created, const char *id, const char *duration, int64_t last,
		    struct skywalking_task *t)
{
	Kindling__Sw__Pair pairs[4], *args[4];
	Kindling__Sw__Command c = KINDLING__SW__COMMAND__INIT, *list = &c;
	Kindling__Sw__Commands m = KINDLING__SW__COMMANDS__INIT;
	const char *texts[4][2] = { { "TaskId", id },
				    { "Duration", duration },
				    { "ExecArgs", "event=cpu" },
				    { "CreateTime", created } };
	uint8_t bytes[1024];

	for (int i = 0; i < 4; i++) {
		kindling__sw__pair__init(&pairs[i]);
		pairs[i].key = (char *)(uintptr_t)texts[i][0];
		pairs[i].value = (char *)(uintptr_t)texts[i][1];
		args[i] = &pairs[i];
	}
	c.command = (char *)(uintptr_t) "AsyncProfilerTaskQuery";
	c.n_args = 4;
	c.args = args;
	m.n_commands = 1;
	m.commands = &list;
	return skywalking_tasks(bytes, kindling__sw__commands__pack(&m, bytes), last, t);
}

static void tasks_are_those_that_are_new(void **state)
{
	struct skywalking_task t[SKYWALKING_TASKS_MAX];
	char long_id[200];

	(void)state;
	assert_int_equal(tasks_of("1700000000000", "t1", "60", -1, t), 1);
	assert_string_equal(t[0].id, "t1");
	assert_int_equal(t[0].seconds, 60);
	assert_true(t[0].created_ms == 1700000000000);
	assert_string_equal(t[0].why, "");
	assert_int_equal(tasks_of("1700000000000", "t1", "60", 1700000000000, t), 0);
	assert_int_equal(tasks_of("1", "t1", "999999", -1, t), 1);
	assert_int_equal(t[0].seconds, SKYWALKING_SECONDS_MAX);
	assert_int_equal(tasks_of("1", "t1", "no", -1, t), 1);
	assert_string_not_equal(t[0].why, "");
	memset(long_id, 'x', sizeof(long_id));
	long_id[sizeof(long_id) - 1] = '\0';
	assert_int_equal(tasks_of("1", long_id, "60", -1, t), 0);
	assert_int_equal(skywalking_tasks("\xff\xff", 2, -1, t), -EBADMSG);
	assert_int_equal(skywalking_tasks("", 0, -1, t), 0);
}

static void metadata_says_size_or_failure(void **state)
{
	const struct skywalking_instance i = { "shop", "1@host" };
	Kindling__Sw__TaskData *m;
	uint8_t *bytes;
	size_t len;

	(void)state;
	bytes = skywalking_meta(&i, "t1", 12345, NULL, &len);
	m = kindling__sw__task_data__unpack(NULL, len, bytes);
	assert_non_null(m);
	assert_string_equal(m->meta->service, "shop");
	assert_string_equal(m->meta->instance, "1@host");
	assert_string_equal(m->meta->task_id, "t1");
	assert_int_equal(m->meta->content_size, 12345);
	assert_int_equal(m->result_case, KINDLING__SW__TASK_DATA__RESULT__NOT_SET);
	kindling__sw__task_data__free_unpacked(m, NULL);
	free(bytes);
	bytes = skywalking_meta(&i, "t1", 12345, "no", &len);
	m = kindling__sw__task_data__unpack(NULL, len, bytes);
	assert_int_equal(m->meta->type, KINDLING__SW__TASK_STATUS__EXECUTION_TASK_ERROR);
	assert_int_equal(m->meta->content_size, -1);
	assert_string_equal(m->error_message, "no");
	kindling__sw__task_data__free_unpacked(m, NULL);
	free(bytes);
}

static void answers_are_read(void **state)
{
	enum skywalking_verdict v = SKYWALKING_FAILED;

	(void)state;
	assert_int_equal(skywalking_answer("", 0, &v), 0);
	assert_int_equal(v, SKYWALKING_GO);
	assert_int_equal(skywalking_answer("\x08\x02", 2, &v), 0);
	assert_int_equal(v, SKYWALKING_OVERSIZE);
	assert_int_equal(skywalking_answer("\x08\x63", 2, &v), 0);
	assert_int_equal(v, SKYWALKING_FAILED);
	assert_int_equal(skywalking_answer("\x08", 1, &v), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_say_events_and_intervals),
		cmocka_unit_test(tasks_are_those_that_are_new),
		cmocka_unit_test(metadata_says_size_or_failure),
		cmocka_unit_test(answers_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
