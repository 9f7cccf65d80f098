/* Names of classes in the form that people write. Pure. */
#pragma once

#define CLASS_TEXT_MAX 1024

/* "[B" becomes "byte[]", "[[Ljava.lang.String;" becomes "java.lang.String[][]"; others stay as they
 * are, cut to @buf. Slashes become dots. Returns @buf. */
const char *class_text(const char *name, char buf[CLASS_TEXT_MAX]);
