/* Which targets a word names. */
#include <string.h>
#include "daemon/discovery/word.h"
#include "daemon/target/target_priv.h"

/* Exactly called so and alive, exactly and ended, a part of its name and alive, the same and ended:
 * only the first kind that there is. Better none than another JVM than the one that was named. */
static int match_rank(const struct target *t, const char *word)
{
	enum word_match m = word_names(&t->jvm, word);

	if (t->service[0] && strcmp(t->service, word) == 0)
		m = WORD_EXACT;
	return m == WORD_NO ? 0 : 2 * (int)m + (t->state != TARGET_GONE);
}

unsigned targets_named(struct targets *table, const char *word, bool known, struct target **ret)
{
	struct target *(*next)(struct targets *, const struct target *) =
		known ? targets_next_known : targets_next;
	struct target *t = NULL;
	unsigned n = 0;
	int best = 1;

	while ((t = next(table, t))) {
		int r = match_rank(t, word);

		if (r < best)
			continue;
		if (r > best)
			n = 0;
		best = r;
		if (n < NAMED_MAX)
			ret[n++] = t;
	}
	return n;
}
