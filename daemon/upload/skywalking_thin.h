/*
 * A task's profile made so small that its JFR fits what an OAP takes: fewer samples, which stand
 * for more. An OAP files profiles by task, instance and event, and not all versions tell two
 * uploads apart: one JFR of a lower rate is worth more than two of which one may be lost. Pure.
 */
#pragma once

#include "daemon/profile/profile.h"

/*
 * About @n of @p's samples, drawn along their weights: each event's weight stays what it was, to
 * one sample's, and stacks of little weight are left out as a longer interval would have left them
 * out. Events have equal parts of @n; one that has less than that keeps all. At least one sample an
 * event. 0 or -ENOMEM.
 */
int skywalking_thin(const struct profile *p, uint64_t n, struct profile **ret);
/*
 * OAPs show wall-clock samples where they are jdk.ExecutionSample, as CPU time is: rows of
 * wall-clock time become such, and rows of CPU time are left out where there are both. 0 or
 * -ENOMEM.
 */
int skywalking_wall(const struct profile *p, struct profile **ret);
