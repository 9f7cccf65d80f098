/* Names of classes as people write them. Pure. */
#pragma once

#define CLASS_TEXT_MAX 1024

/* "byte[]" of "[B", "java.lang.String[][]" of "[[Ljava.lang.String;"; others as they are, cut to
 * @buf. Slashes become dots. Returns @buf. */
const char *class_text(const char *name, char buf[CLASS_TEXT_MAX]);
