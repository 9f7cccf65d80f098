/* Finds JVMs by the words that users name them with, as `kindling status` shows them. */
#pragma once

#include "daemon/discovery/jvm.h"

enum word_match { WORD_NO, WORD_PART, WORD_EXACT };

/* How @word names @jvm. A pid, 12 digits or more of a container id, a container, a pod (with or
 * without namespace) and the name match exactly; a part of the name matches partly. */
enum word_match word_names(const struct jvm *jvm, const char *word);
/* How similar @word is to the names of a JVM, for suggestions: the length of the longest common run
 * of characters, ignoring case. 0 = too little. */
unsigned word_resembles(const struct jvm *jvm, const char *word);
