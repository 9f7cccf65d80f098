/* Native methods for test programs in Java: system calls that Java itself does not make. */
#include <jni.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>
#include "tests/harness/undisturbed.h"

/* Makes all calls of undisturbed.h in this thread and returns the results, one line for each. */
JNIEXPORT jstring JNICALL Java_Undisturbed_run(JNIEnv *env, jclass self);
/* Waits for a semaphore that nobody posts: a system call that belongs to none of the known
 * reasons. */
JNIEXPORT void JNICALL Java_OffCpuKnown_semaphore(JNIEnv *env, jclass self, jlong ns);
/* Runs the Runnable below a native frame: a virtual thread that waits there keeps its carrier. */
JNIEXPORT void JNICALL Java_OffCpuKnown_pinned(JNIEnv *env, jclass self, jobject runnable);

JNIEXPORT jstring JNICALL Java_Undisturbed_run(JNIEnv *env, jclass self)
{
	static uint32_t results[UNDISTURBED_CALLS][UNDISTURBED_RESULTS];
	static char text[UNDISTURBED_CALLS * 80];
	size_t len = 0;

	(void)self;
	undisturbed_open();
	undisturbed_run(results);
	undisturbed_close();
	for (unsigned i = 0; i < UNDISTURBED_CALLS; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %u %u %u %u\n",
					undisturbed_name(i), results[i][UNDISTURBED_FINE],
					results[i][UNDISTURBED_CUT], results[i][UNDISTURBED_SHORT],
					results[i][UNDISTURBED_WRONG]);
	return (*env)->NewStringUTF(env, text);
}

JNIEXPORT void JNICALL Java_OffCpuKnown_semaphore(JNIEnv *env, jclass self, jlong ns)
{
	const struct timespec ts = { ns / 1000000000, ns % 1000000000 };
	struct sembuf op = { 0, -1, 0 };
	int id = semget(IPC_PRIVATE, 1, 0600);

	(void)env;
	(void)self;
	(void)semtimedop(id, &op, 1, &ts);
	(void)semctl(id, 0, IPC_RMID);
}

JNIEXPORT void JNICALL Java_OffCpuKnown_pinned(JNIEnv *env, jclass self, jobject runnable)
{
	jclass class = (*env)->GetObjectClass(env, runnable);

	(void)self;
	(*env)->CallVoidMethod(env, runnable, (*env)->GetMethodID(env, class, "run", "()V"));
}
