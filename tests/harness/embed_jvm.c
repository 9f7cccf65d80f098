/*
 * A program that embeds a JVM, as some servers and databases do: it loads libjvm with RTLD_LOCAL,
 * its options are in the code and not on the command line, and its launcher is not called java.
 *
 * embed_jvm LIBJVM CLASSPATH MAIN [OPTION...]
 *
 * The variable SERVER_OPTION holds one more option, in a place where no JVM would look for one.
 */
#include <dlfcn.h>
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef jint (*create_fn)(JavaVM **, void **, void *);

#define OPTIONS_MAX 18

static int run_main(JNIEnv *env, const char *name)
{
	jclass main_class = (*env)->FindClass(env, name);
	jclass string = (*env)->FindClass(env, "java/lang/String");
	jmethodID method;

	if (!main_class || !string)
		return 1;
	method = (*env)->GetStaticMethodID(env, main_class, "main", "([Ljava/lang/String;)V");
	if (!method)
		return 1;
	(*env)->CallStaticVoidMethod(env, main_class, method,
				     (*env)->NewObjectArray(env, 0, string, NULL));
	return (*env)->ExceptionCheck(env) ? 1 : 0;
}

int main(int argc, char **argv)
{
	JavaVMOption options[OPTIONS_MAX] = { 0 };
	JavaVMInitArgs args = { .version = JNI_VERSION_1_8, .options = options };
	char classpath[1024];
	create_fn create;
	void *library;
	JavaVM *vm;
	JNIEnv *env;

	if (argc < 4 || argc - 4 > OPTIONS_MAX - 2)
		return 2;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	create = library ? (create_fn)dlsym(library, "JNI_CreateJavaVM") : NULL;
	if (!create) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	snprintf(classpath, sizeof(classpath), "-Djava.class.path=%s", argv[2]);
	options[args.nOptions++].optionString = classpath;
	for (int i = 4; i < argc; i++)
		options[args.nOptions++].optionString = argv[i];
	if (getenv("SERVER_OPTION"))
		options[args.nOptions++].optionString = getenv("SERVER_OPTION");
	if (create(&vm, (void **)&env, &args) != JNI_OK)
		return 1;
	return run_main(env, argv[3]);
}
