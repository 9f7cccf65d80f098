/* The words by which a person names a JVM: what `kindling status` shows. */
#pragma once

#include "daemon/discovery/jvm.h"

enum word_match { WORD_NO, WORD_PART, WORD_EXACT };

/* A pid, 12 digits or more of a container id, a container, a pod (with or without namespace) or the
 * name name it exactly; a part of the name does in part. */
enum word_match word_names(const struct jvm *jvm, const char *word);
/* How much of @word is in what it is called, to suggest it: characters in a row that both have,
 * whatever their case. 0 = too little to be meant. */
unsigned word_resembles(const struct jvm *jvm, const char *word);
