/*
 * The labels of a JVM (core/labels.h): what the runtime's files, its owner and the settings say,
 * where several say the same in the order of docs/decisions/0016.
 */
#pragma once

#include "daemon/core/config.h"
#include "daemon/core/labels.h"
#include "daemon/discovery/jvm.h"
#include "daemon/discovery/declared.h"

struct target;

/* Of @jvm, whose owner says @declared, on a host called @host that its cluster calls @node. Pure.
 */
void labelling_make(const struct jvm *jvm, const struct declared *declared,
		    const struct config *config, struct labels *ret);
/* Computes the labels of @t again from what is known now; their users are informed of a change. */
void labelling_renew(struct target *t);
