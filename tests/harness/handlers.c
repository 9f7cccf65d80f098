/* For WalkNeighbours.java: returns which function handles a signal. The kernel shows that only
 * to the process itself. */
#include <signal.h>
#include <stdint.h>

int64_t Java_WalkNeighbours_handler(void *env, void *class, int32_t signo);

int64_t Java_WalkNeighbours_handler(void *env, void *class, int32_t signo)
{
	struct sigaction now;

	(void)env;
	(void)class;
	if (sigaction(signo, NULL, &now) < 0)
		return -1;
	return (int64_t)(now.sa_flags & SA_SIGINFO ? (uintptr_t)now.sa_sigaction
						   : (uintptr_t)now.sa_handler);
}
