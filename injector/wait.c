/* Waiting with a deadline. */
#include "injector/inject.h"

#include "daemon/ground/clock.h"

int inject_remaining_ms(const struct inject *in)
{
	uint64_t now = clock_mono_ns();

	return now >= in->deadline_mono_ns ? 0
					   : (int)((in->deadline_mono_ns - now) / NS_PER_MS) + 1;
}

void inject_pause_us(int us)
{
	struct timespec t = { 0, us * 1000 };

	nanosleep(&t, NULL);
}

void inject_pause_ms(int ms)
{
	inject_pause_us(ms * 1000);
}
