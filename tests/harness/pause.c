/* The first process of a test's pod, like the pause program of Kubernetes: waits until it gets a
 * signal to end. */
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
