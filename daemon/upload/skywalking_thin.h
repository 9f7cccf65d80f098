/*
 * Makes a task's profile so small that its JFR fits the limit of an OAP: fewer samples, which stand
 * for more. An OAP stores profiles by task, instance and event, and some versions cannot keep two
 * uploads apart: one JFR of a lower rate is worth more than two of which one may be lost. Pure.
 */
#pragma once

#include "daemon/profile/profile.h"

/*
 * About @n of @p's samples, drawn in proportion to their weights: each event's weight stays the
 * same, up to one sample's, and stacks of little weight are left out as with a longer interval.
 * Events have equal parts of @n; one with fewer samples keeps all. At least one sample for each
 * event. 0 or -ENOMEM.
 */
int skywalking_thin(const struct profile *p, uint64_t n, struct profile **ret);
/*
 * OAPs show wall-clock samples only as jdk.ExecutionSample, like CPU time: turns rows of wall-clock
 * time into such, and removes rows of CPU time if there are both. 0 or -ENOMEM.
 */
int skywalking_wall(const struct profile *p, struct profile **ret);
