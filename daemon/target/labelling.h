/*
 * The labels of a JVM (core/labels.h), from the files of the container runtime, the JVM's owner and
 * the settings. docs/decisions/0016 says which of them wins.
 */
#pragma once

#include "daemon/core/config.h"
#include "daemon/core/labels.h"
#include "daemon/discovery/jvm.h"
#include "daemon/discovery/declared.h"

struct target;

/* Computes the labels of @jvm. @declared: names that its environment and options give it. Pure. */
void labelling_make(const struct jvm *jvm, const struct declared *declared,
		    const struct config *config, struct labels *ret);
/* Computes the labels of @t again from what is known now, and calls on_labels() on a change. */
void labelling_renew(struct target *t);
