/*
 * Methods: is this word a Method*, what is it called, which line is this bytecode. Names are copied
 * out of Method -> ConstMethod -> ConstantPool -> Symbol by the handler the first time a Method* is
 * seen, while its frame is live: nothing of it can have been unloaded. A copy is found again by the
 * address of the Method and believed as long as the Method still leads to the same ConstMethod and
 * ConstantPool: an address that came back for another class after unloading is noticed.
 *
 * Copies lie in a store of fixed size. A full store is left for an empty one when the writer begins
 * a new epoch; the old one stays readable until the epoch after.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/walk.h"
#include "proto/idle.h"

#define METHOD_STORE_BYTES (768u << 10) /* of copies; pages are used as they fill */

struct method_copy {
	/* addresses in the JVM; of a class: its Klass, its name's Symbol, 0 */
	uint64_t method, const_method, pool;
	uint16_t class_len, name_len, signature_len, file_len;
	uint16_t code_len; /* bytes of bytecode */
	uint16_t lines_len; /* of the compressed line table */
	uint8_t idle; /* 1 + enum idle_sight; 0 = nobody has asked yet */
	char text[]; /* class, name, signature, file, each with its NUL; then the line table */
};

/* Agent's thread. 0 or -ENOMEM. */
int method_init(void);
void method_deinit(void);
uint64_t method_bytes(void);
/* Copies will soon not fit any more: time for method_forget(). */
bool method_store_full(void);
/* A new epoch: no copy handed out so far will be asked for again. */
void method_forget(void);
bool method_resolve(const struct method_copy *copy, struct walk_method *ret);
/* "java/lang/String", "[B"; valid until the next call. NULL = none. */
const char *class_resolve(const struct method_copy *copy);
int32_t method_line(const struct method_copy *copy, int32_t bci);
/* Application threads too. */
enum idle_sight method_idle(struct method_copy *copy);

/* Handler. */
bool method_check_sig(uint64_t method); /* does it look like a Method* with a name? */
/* The copy, made if need be; NULL = not a method, or the store is full. */
const struct method_copy *method_copy_sig(uint64_t method);
/* The bytecode index of a bytecode pointer of @method; -1 = it does not point there. */
int32_t method_bci_sig(uint64_t method, uint64_t bcp);
/* Whether @method is CLASS.NAME; compares its symbols. */
bool method_is_sig(uint64_t method, const char *class_name, const char *name);
/* The Klass of a java.lang.Class behind a JNI reference; 0 = it moved all the while. */
uint64_t klass_of_mirror_sig(void *jclass_ref);
/* The same for a Klass: method_copy with a class's name alone. Application threads too. */
const struct method_copy *class_copy_sig(uint64_t klass);

/* A class as it travels to the writer: the address of its copy, 0 = unknown. With this bit the
 * object that is meant is no instance but the class itself, as in a static synchronized method. */
#define CLASS_ITSELF 1u
/* Whether it is java.lang.Class: then its instance is a class itself. */
bool class_is_mirror_sig(uint64_t handle);
/* Of the object at that address, which may move meanwhile: worth something only if it did not. */
uint64_t class_of_object_sig(uint64_t object, uint64_t klass);
