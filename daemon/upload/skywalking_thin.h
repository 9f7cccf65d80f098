/*
 * Makes a task's profile so small that its JFR fits an OAP's limit: fewer samples, each of which
 * stands for more. Two uploads are no way out: an OAP stores profiles by task, instance and event,
 * and some versions lose one of two. Pure.
 */
#pragma once

#include "daemon/profile/profile.h"

/*
 * Draws about @n of @p's samples, in proportion to their weights. The weight of each event stays
 * the same up to one sample's, and stacks of little weight disappear, as with a longer interval.
 * The events share @n equally; one with fewer samples keeps all. At least one sample of each event
 * stays. 0 or -ENOMEM.
 */
int skywalking_thin(const struct profile *p, uint64_t n, struct profile **ret);
/*
 * Turns wall-clock samples into samples of CPU time, because an OAP shows wall-clock samples only
 * as jdk.ExecutionSample. If there are both, those of CPU time are removed. 0 or -ENOMEM.
 */
int skywalking_wall(const struct profile *p, struct profile **ret);
