/* Names and lines of methods, for walker_resolve_x(). Agent's thread only. */
#pragma once

#include <jvmti.h>

void names_init(JavaVM *vm, jvmtiEnv *jvmti);
/*
 * "Lpkg/Main$$Lambda$12/0x00007f01;" -> "pkg/Main$$Lambda", in place: numbers and addresses of
 * hidden classes differ from run to run and would keep profiles from being merged. Pure.
 */
void names_normalise_class(char *signature);
