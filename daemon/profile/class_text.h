/* Class names in the form that people write. Pure. */
#pragma once

#define CLASS_TEXT_MAX 1024

/* Writes "byte[]" for "[B" and "java.lang.String[][]" for "[[Ljava.lang.String;"; other names
 * stay as they are. Slashes become dots. What does not fit is cut. Returns @buf. */
const char *class_text(const char *name, char buf[CLASS_TEXT_MAX]);
