/*
 * Methods: is a word a Method*, what is the method's name, which line is a bytecode. The handler
 * copies the name out of Method -> ConstMethod -> ConstantPool -> Symbol when it first meets a
 * Method*, while a frame of it is live, so that nothing can have been unloaded. A copy is found by
 * the address of the Method and valid while the Method leads to the same ConstMethod and
 * ConstantPool: that detects an address that was reused for another class.
 *
 * Copies are in a store of fixed size. When the writer begins a new epoch, an empty store replaces
 * a full one; the old one stays readable until the next epoch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/walk.h"
#include "proto/idle.h"

#define METHOD_STORE_BYTES (768u << 10) /* bytes of copies; pages are allocated as they fill */

struct method_copy {
	/* identity in the JVM: addresses of the Method's ConstMethod and ConstantPool; for a class
	 * its Klass, its name's Symbol, 0 */
	uint64_t method, const_method, pool;
	uint16_t class_len, name_len, signature_len, file_len;
	uint16_t code_len; /* bytes of bytecode */
	uint16_t lines_len; /* of the compressed line table */
	uint8_t idle; /* 1 + enum idle_sight; 0 = not asked for yet */
	char text[]; /* class, name, signature, file, each NUL-terminated; then the line table */
};

/* Agent's thread. 0 or -ENOMEM. */
int method_init(void);
void method_deinit(void);
uint64_t method_bytes(void);
/* The store will be full soon: time for method_forget(). */
bool method_store_full(void);
/* Begins a new epoch: the caller will use no copy handed out so far. */
void method_forget(void);
bool method_resolve(const struct method_copy *copy, struct walk_method *ret);
/* "java/lang/String", "[B"; valid until the next call. NULL = none. */
const char *class_resolve(const struct method_copy *copy);
int32_t method_line(const struct method_copy *copy, int32_t bci);
/* Also in application threads. */
enum idle_sight method_idle(struct method_copy *copy);

/* Handler. */
bool method_check_sig(uint64_t method); /* does it look like a Method* with a name? */
/* The copy of a method, made if there is none; NULL = not a method, or the store is full. */
const struct method_copy *method_copy_sig(uint64_t method);
/* The bytecode index of a bytecode pointer of @method; -1 = it does not point into its
 * bytecodes. */
int32_t method_bci_sig(uint64_t method, uint64_t bcp);
/* Is @method CLASS.NAME? Compares the characters of its symbols. */
bool method_is_sig(uint64_t method, const char *class_name, const char *name);
/* The Klass of a java.lang.Class behind a JNI reference; 0 = the object kept moving. */
uint64_t klass_of_mirror_sig(void *jclass_ref);
/* The same for a Klass: a method_copy that has only the name of a class. Also in application
 * threads. */
const struct method_copy *class_copy_sig(uint64_t klass);

/* A class as events carry it: the address of its copy, 0 = unknown. With this bit the object is the
 * class itself rather than an instance, as in a static synchronized method. */
#define CLASS_ITSELF 1u
/* Is it java.lang.Class? Then its instance is a class. */
bool class_is_mirror_sig(uint64_t handle);
/* The class of the object at that address; valid only if the object did not move meanwhile. */
uint64_t class_of_object_sig(uint64_t object, uint64_t klass);
