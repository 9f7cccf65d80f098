/* Reads facts about the classes of a HotSpot JVM from its memory. */
#pragma once

#include "injector/inject.h"

/*
 * Has the application ever had a virtual thread? Only the first one initialises their class.
 * Returns 1, 0 (also before JDK 21), or -errno if unknown.
 */
int vmclasses_virtual_threads(struct inject *in);
