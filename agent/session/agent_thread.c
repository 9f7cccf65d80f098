/*
 * The agent's own thread: started by an attach, ended by DETACH, started again by a later attach.
 * Agent_OnAttach passes its options through a mailbox, because it must return at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/session/agent_thread.h"
#include "agent/session/session.h"

#define ATTACH_TRIES 6000 /* one every 10 ms, because a JVM that is just starting is not ready */

enum mail { MAIL_NONE, MAIL_BEING_WRITTEN, MAIL_THERE };

static struct {
	uint32_t mail; /* enum mail */
	uint32_t thread_lives;
	struct session_paths paths;
} box;

static void agent_thread_option(const char *options, const char *key, char *ret)
{
	size_t key_len = strlen(key), n = 0;
	const char *p = options;

	ret[0] = '\0';
	while (p && strncmp(p, key, key_len) != 0) {
		p = strchr(p, ',');
		p = p ? p + 1 : NULL;
	}
	if (!p)
		return;
	for (p += key_len; p[n] && p[n] != ',' && n < PATH_BYTES - 1; n++)
		ret[n] = p[n];
	ret[n] = '\0';
}

static bool has_mail(void)
{
	return __atomic_load_n(&box.mail, __ATOMIC_ACQUIRE) == MAIL_THERE;
}

static void take_mail(struct session_paths *ret)
{
	*ret = box.paths;
	__atomic_store_n(&box.mail, MAIL_NONE, __ATOMIC_RELEASE);
}

static bool attach_to_jvm(void)
{
	static char name[] = "kindling";
	JavaVMAttachArgs args = { JNI_VERSION_1_6, name, NULL };
	struct timespec pause = { 0, 10 * NS_PER_MS };

	for (int i = 0; i < ATTACH_TRIES; i++) {
		if ((*agent.vm)->AttachCurrentThreadAsDaemon(agent.vm, (void **)&agent.env,
							     &args) == JNI_OK)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static void agent_thread_run_sessions(void)
{
	struct session_paths paths;
	bool going = true;

	if (!attach_to_jvm()) {
		/* the mail is lost, and the daemon notices it by the missing HELLO */
		take_mail(&paths);
		return;
	}
	/* EFD_NONBLOCK and EFD_CLOEXEC have the values of O_x */
	agent.wake_fd = (int)syscall(SYS_eventfd2, 0, O_NONBLOCK | O_CLOEXEC);
	while (going) {
		if (has_mail()) {
			take_mail(&paths);
			going = session_open(&paths);
		}
		if (going)
			going = session_step();
	}
	session_close();
	agent_close_wake_fd();
	(*agent.vm)->DetachCurrentThread(agent.vm);
	agent.env = NULL;
}

static bool agent_thread_claim(void)
{
	return __atomic_exchange_n(&box.thread_lives, 1, __ATOMIC_SEQ_CST) == 0;
}

static void *thread_main(void *unused)
{
	(void)unused;
	/* the JVM sets this name only for threads that it starts itself */
	syscall(SYS_prctl, PR_SET_NAME, "kindling", 0, 0, 0);
	do {
		agent_thread_run_sessions();
		__atomic_store_n(&box.thread_lives, 0, __ATOMIC_SEQ_CST);
		/* an attach during session_close() has left its mail without starting a thread */
	} while (has_mail() && agent_thread_claim());
	return NULL;
}

static void start_thread(void)
{
	sigset_t all, old;
	pthread_t thread;

	/* this thread takes no signals: none of the application's, no SIGPIPE, none of the agent's
	 * timers */
	memset(&all, 0xff, sizeof(all));
	/* except those of faults: a fault whose signal is blocked would end the process */
	all.__val[0] &= ~(1ul << (SIGSEGV - 1) | 1ul << (SIGBUS - 1) | 1ul << (SIGFPE - 1) |
			  1ul << (SIGILL - 1));
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, thread_main, NULL) == 0) {
		pthread_detach(thread);
	} else {
		__atomic_store_n(&box.thread_lives, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&box.mail, MAIL_NONE, __ATOMIC_SEQ_CST);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void agent_thread_begin(const char *options)
{
	uint32_t none = MAIL_NONE;

	if (!__atomic_compare_exchange_n(&box.mail, &none, MAIL_BEING_WRITTEN, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return; /* another attach is in progress: this caller gets no HELLO and tries
			 * again */
	agent_thread_option(options, "events=", box.paths.events);
	agent_thread_option(options, "control=", box.paths.control);
	__atomic_store_n(&box.mail, MAIL_THERE, __ATOMIC_SEQ_CST);
	if (agent_thread_claim())
		start_thread();
	else
		agent_wake();
}
