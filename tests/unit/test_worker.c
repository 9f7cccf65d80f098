#include "tests/unit/unit.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include "daemon/core/worker.h"
#include "daemon/ground/clock.h"

struct book {
	struct loop *loop;
	struct worker *worker;
	pthread_mutex_t gate; /* held: jobs wait */
	pthread_t runner;
	int ran[WORKER_JOBS_MAX], n_ran, n_done, stop_at, refused;
	bool all_blocked;
};

struct item {
	struct book *book;
	int number;
};

static void run_item(void *userdata)
{
	struct item *item = userdata;
	struct book *b = item->book;
	sigset_t mask;

	pthread_mutex_lock(&b->gate);
	b->ran[b->n_ran++] = item->number;
	b->runner = pthread_self();
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	b->all_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGPROF);
	pthread_mutex_unlock(&b->gate);
}

static void item_done(void *userdata)
{
	struct item *item = userdata;
	struct book *b = item->book;

	assert_false(pthread_equal(b->runner, pthread_self()));
	if (++b->n_done == b->stop_at)
		loop_stop(b->loop, 0);
}

static void open_book(struct book *b)
{
	*b = (struct book){ 0 };
	pthread_mutex_init(&b->gate, NULL);
	assert_int_equal(loop_new(&b->loop), 0);
	assert_int_equal(worker_new(b->loop, &b->worker), 0);
}

static void close_book(struct book *b)
{
	b->worker = worker_free(b->worker);
	b->loop = loop_free(b->loop);
	pthread_mutex_destroy(&b->gate);
}

static void jobs_run_in_order_beside_the_loop_and_are_done_inside_it(void **state)
{
	struct item items[10];
	struct book b;

	(void)state;
	open_book(&b);
	b.stop_at = 10;
	for (int i = 0; i < 10; i++) {
		items[i] = (struct item){ &b, i };
		assert_int_equal(worker_submit(b.worker, run_item, item_done, &items[i]), 0);
	}
	assert_int_equal(loop_run(b.loop), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(b.ran[i], i);
	assert_true(b.all_blocked);
	close_book(&b);
}

static void a_full_queue_refuses_and_forgets_nothing(void **state)
{
	struct item item;
	struct book b;

	(void)state;
	open_book(&b);
	item = (struct item){ &b, 7 };
	pthread_mutex_lock(&b.gate);
	for (int i = 0; i < WORKER_JOBS_MAX; i++)
		assert_int_equal(worker_submit(b.worker, run_item, item_done, &item), 0);
	assert_int_equal(worker_submit(b.worker, run_item, item_done, &item), -EBUSY);
	pthread_mutex_unlock(&b.gate);
	b.stop_at = WORKER_JOBS_MAX;
	assert_int_equal(loop_run(b.loop), 0);
	assert_int_equal(b.n_ran, WORKER_JOBS_MAX);
	close_book(&b);
}

static void submit_again(void *userdata)
{
	struct item *item = userdata;

	item->book->n_done++;
	if (worker_submit(item->book->worker, run_item, item_done, item) == -EBUSY)
		item->book->refused++;
}

static void freeing_finishes_the_queue_and_refuses_more(void **state)
{
	struct item item;
	struct book b;

	(void)state;
	open_book(&b);
	item = (struct item){ &b, 1 };
	for (int i = 0; i < 5; i++)
		assert_int_equal(worker_submit(b.worker, run_item, submit_again, &item), 0);
	worker_free(b.worker);
	b.worker = NULL;
	assert_int_equal(b.n_ran, 5);
	assert_int_equal(b.n_done, 5);
	assert_int_equal(b.refused, 5);
	close_book(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_run_in_order_beside_the_loop_and_are_done_inside_it),
		cmocka_unit_test(a_full_queue_refuses_and_forgets_nothing),
		cmocka_unit_test(freeing_finishes_the_queue_and_refuses_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
