/* What a HotSpot JVM has done with its classes, from its memory. */
#pragma once

#include "injector/inject.h"

/*
 * Has the application ever had a virtual thread? Their class is initialised then, and only then.
 * 1, 0 (also before JDK 21), or -errno when it cannot be told.
 */
int vmclasses_virtual_threads(struct inject *in);
