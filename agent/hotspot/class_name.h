#pragma once

/*
 * "Lpkg/Main$$Lambda$12/0x00007f01;" -> "pkg/Main$$Lambda", in place: numbers and addresses of
 * hidden classes differ from run to run and would keep profiles from being merged. Pure.
 */
void names_normalise_class(char *signature);
