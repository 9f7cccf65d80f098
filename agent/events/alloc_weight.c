/* See alloc_weight.h. */
#include "agent/events/alloc_weight.h"

/* multiple of the interval above which an object is its own weight: exp(-32) of it is less than a
 * byte */
#define CERTAIN 32.0

/* x / (1 - exp(-x)) for small x, where the direct formula loses precision: a series up to the sixth
 * power */
static double ratio_small(double x)
{
	double x2 = x * x;

	return 1 + x / 2 + x2 / 12 * (1 - x2 / 60 * (1 - x2 / 42));
}

/* exp(-x) = exp(-x / 64) to the power of 64 */
static double exp_negative(double x)
{
	double y = x / 64, term = 1, sum = 1;

	for (int i = 1; i < 10; i++) {
		term *= -y / i;
		sum += term;
	}
	for (int i = 0; i < 6; i++)
		sum *= sum;
	return sum;
}

uint64_t alloc_weight(uint64_t size, uint64_t interval)
{
	double x;

	if (interval == 0 || size / interval >= (uint64_t)CERTAIN)
		return size;
	x = (double)size / (double)interval;
	if (x < 0.5)
		return (uint64_t)((double)interval * ratio_small(x) + 0.5);
	return (uint64_t)((double)size / (1 - exp_negative(x)) + 0.5);
}
