/*
 * Methods: whether a word is a Method*, names, and the line of a bytecode. When the handler first
 * meets a Method*, it copies the names from Method -> ConstMethod -> ConstantPool -> Symbol; a
 * frame of the method is live then, so its class cannot have been unloaded. A copy is found by the
 * address of the Method and is valid while the Method leads to the same ConstMethod and
 * ConstantPool, which detects an address that was reused for another method.
 *
 * Copies are kept in a store of fixed size. When the writer begins a new epoch, an empty store
 * replaces the full one, which stays readable until the next epoch.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/base/walk.h"
#include "proto/idle.h"

/* bytes of copies; pages get memory when they are first written */
#define METHOD_STORE_BYTES (768u << 10)

struct method_copy {
	/* identity in the JVM: addresses of the Method, its ConstMethod and its ConstantPool; for a
	 * class: of its Klass, of its name's Symbol, 0 */
	uint64_t method, const_method, pool;
	uint16_t class_len, name_len, signature_len, file_len;
	uint16_t code_len; /* bytes of bytecode */
	uint16_t lines_len; /* of the compressed line table */
	/* 1 + enum idle_sight + 4 * a part of idle_version(); 0 = not asked for yet */
	uint16_t idle;
	char text[]; /* class, name, signature, file, each NUL-terminated; then the line table */
};

/* Agent's thread. 0 or -ENOMEM. */
int method_init(void);
void method_deinit(void);
uint64_t method_bytes(void);
/* Is the store almost full? Then call method_forget() soon. */
bool method_store_full(void);
/* Begins a new epoch: invalidates all copies that were handed out so far. */
void method_forget(void);
bool method_resolve(const struct method_copy *copy, struct walk_method *ret);
/* "java/lang/String", "[B"; valid until the next call. NULL = none. */
const char *class_resolve(const struct method_copy *copy);
int32_t method_line(const struct method_copy *copy, int32_t bci);
/* What the method implies about a wait (proto/idle.h). Also in application threads. */
enum idle_sight method_idle(struct method_copy *copy);
/* Agent's thread: klass_of_mirror_sig() between collections, which it waits for; 0 = they leave no
 * time to read, or @of is NULL. */
uint64_t klass_of_class(JNIEnv *env, jclass of);

/* Handler. */
bool method_check_sig(uint64_t method); /* does it look like a Method* with a name? */
/* The copy of a method, made if there is none; NULL = not a method, or the store is full. */
const struct method_copy *method_copy_sig(uint64_t method);
/* The bytecode index of @bcp, a bytecode pointer; -1 = it does not point into @method's
 * bytecodes. */
int32_t method_bci_sig(uint64_t method, uint64_t bcp);
/* Is @method CLASS.NAME? Compares the characters of its symbols. */
bool method_is_sig(uint64_t method, const char *class_name, const char *name);
/* The Klass of a java.lang.Class behind a JNI reference; 0 = a collection is moving the object. */
uint64_t klass_of_mirror_sig(void *jclass_ref);
/* The same for a Klass: a method_copy that has only the name of a class. Also in application
 * threads. */
const struct method_copy *class_copy_sig(uint64_t klass);

/* A class in an event is the address of its copy; 0 = unknown. This bit means that the object is
 * the class itself rather than an instance, as with a static synchronized method. */
#define CLASS_ITSELF 1u
/* This one: an empty int[]. HotSpot locks one for each class while it links or initialises the
 * class (InstanceKlass::_init_lock, until JDK 23); programs hardly ever lock one. */
#define CLASS_INIT_LOCK 2u
#define CLASS_BITS	(CLASS_ITSELF | CLASS_INIT_LOCK)
/* Is it java.lang.Class? Then the object is itself a class. */
bool class_is_mirror_sig(uint64_t handle);
bool class_is_int_array_sig(uint64_t handle);
/* The class, in that form, of the object at @object, whose Klass is @klass; valid only if the
 * object did not move meanwhile. */
uint64_t class_of_object_sig(uint64_t object, uint64_t klass);
