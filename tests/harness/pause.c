/* The first process of a pod of the tests, as Kubernetes' own pause: waits until it is told to go.
 */
#include <signal.h>
#include <unistd.h>

static void end(int signo)
{
	(void)signo;
	_exit(0);
}

int main(void)
{
	(void)signal(SIGTERM, end);
	(void)signal(SIGINT, end);
	for (;;)
		(void)pause();
}
