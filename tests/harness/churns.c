/*
 * A JVM whose program means no good: it keeps the kernel, and whoever follows its threads and
 * processes, as busy as a container's share of the CPUs allows.
 *
 *   churns MANNER LIBJVM    says READY once it is a JVM, and runs until it is killed
 *
 *   churn     four threads begin and join others        attached  the same, each is the JVM's
 *   switch    2,000 threads sleep for 20 us
 *   blocked   400 threads, which get no signals, sleep for a little more than a millisecond
 *   sleepers  threads begin and stay, 4,000 of them     forks     children begin and end
 *   execs     children that execute this program        names     children change session and name
 *   maps      two threads map and unmap memory          rests     nothing
 */
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SWITCHERS  2000
#define BLOCKED	   400
#define SLEEPERS   4000
#define STACK_SIZE (32 << 10)

typedef jint (*create_fn)(JavaVM **, void **, void *);

static pthread_attr_t small;
static const char *self;
static JavaVM *vm;

static void sleep_ns(long ns)
{
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&t, NULL);
}

static void *end(void *unused)
{
	return unused;
}

static void *churn(void *unused)
{
	pthread_t t;

	for (;;)
		if (pthread_create(&t, &small, end, NULL) == 0)
			pthread_join(t, NULL);
	return unused;
}

static void *is_attached(void *unused)
{
	JNIEnv *env;

	if ((*vm)->AttachCurrentThread(vm, (void **)&env, NULL) == JNI_OK)
		(*vm)->DetachCurrentThread(vm);
	return unused;
}

static void *churn_attached(void *unused)
{
	pthread_t t;

	for (;;)
		if (pthread_create(&t, NULL, is_attached, NULL) == 0)
			pthread_join(t, NULL);
	return unused;
}

static void *switches(void *unused)
{
	for (;;)
		sleep_ns(20000);
	return unused;
}

/* Each sleep is a record of the kernel's, and the agent is never asked about it. */
static void *is_blocked(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (;;)
		sleep_ns(1100000);
	return unused;
}

static void *sleeps(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *maps(void *unused)
{
	for (;;) {
		void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			continue;
		memset(p, 1, 4096);
		munmap(p, 1 << 20);
	}
	return unused;
}

static void child_executes(void)
{
	execl(self, self, "ends", (char *)NULL);
}

static void child_is_named(void)
{
	char name[16];

	(void)setsid();
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "java%d", i);
		(void)prctl(PR_SET_NAME, name);
	}
}

static void fork_for_ever(void (*child)(void))
{
	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			if (child)
				child();
			_exit(0);
		}
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
	}
}

static void begin(int n, void *(*run)(void *))
{
	pthread_t t;

	for (int i = 0; i < n; i++)
		(void)pthread_create(&t, &small, run, NULL);
	(void)sleeps(NULL);
}

static int act(const char *manner)
{
	if (strcmp(manner, "churn") == 0)
		begin(4, churn);
	else if (strcmp(manner, "attached") == 0)
		begin(4, churn_attached);
	else if (strcmp(manner, "switch") == 0)
		begin(SWITCHERS, switches);
	else if (strcmp(manner, "blocked") == 0)
		begin(BLOCKED, is_blocked);
	else if (strcmp(manner, "sleepers") == 0)
		begin(SLEEPERS, sleeps);
	else if (strcmp(manner, "maps") == 0)
		begin(2, maps);
	else if (strcmp(manner, "rests") == 0)
		(void)sleeps(NULL);
	else if (strcmp(manner, "forks") == 0)
		fork_for_ever(NULL);
	else if (strcmp(manner, "execs") == 0)
		fork_for_ever(child_executes);
	else if (strcmp(manner, "names") == 0)
		fork_for_ever(child_is_named);
	return 2;
}

static int become_jvm(const char *path)
{
	static char heap[] = "-Xmx32m", collector[] = "-XX:+UseSerialGC",
		    compiler[] = "-XX:TieredStopAtLevel=1";
	JavaVMOption options[] = { { heap, NULL }, { collector, NULL }, { compiler, NULL } };
	JavaVMInitArgs args = { .version = JNI_VERSION_1_8, .nOptions = 3, .options = options };
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	create_fn create = library ? (create_fn)dlsym(library, "JNI_CreateJavaVM") : NULL;
	JNIEnv *env;

	if (!create) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	return create(&vm, (void **)&env, &args) == JNI_OK ? 0 : -1;
}

/* tests/container/bundle.py waits for the first lines. The attack begins at once if the variable
 * GO is set, otherwise when there is a file "go". */
static void wait_for_go(void)
{
	puts("READY\nline 0\nline 1");
	fflush(stdout);
	while (!getenv("GO") && access("/tmp/go", F_OK) < 0)
		sleep_ns(50000000);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "ends") == 0)
		return 0;
	if (argc != 3 || become_jvm(argv[2]) < 0)
		return 2;
	self = argv[0];
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_SIZE);
	wait_for_go();
	return act(argv[1]);
}
