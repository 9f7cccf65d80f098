/* Finds the targets that a word names. */
#include <string.h>
#include "daemon/discovery/word.h"
#include "daemon/target/target_priv.h"

/* How well @word names the target; 0 = not at all. An exact name ranks above a part of the name,
 * and of the same match a living JVM above one that has ended. Only targets of the best rank are
 * returned: an ended JVM of exactly this name must not be taken for a living one of a similar
 * name. */
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
