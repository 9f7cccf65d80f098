/*
 * The name under which programmers know the lock that a thread parks for. The blocker of a park is
 * often an internal part of it: a ReentrantLock$NonfairSync belongs to a ReentrantLock. Pure.
 */
#pragma once

#include <stddef.h>

/*
 * @class_name: of the blocker, "java/util/concurrent/Semaphore$FairSync"
 * @ret:        "java/util/concurrent/Semaphore"; cut if it does not fit in @size
 */
void lock_name(const char *class_name, char *ret, size_t size);
