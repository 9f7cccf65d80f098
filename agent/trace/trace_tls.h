/*
 * Trace contexts that a library publishes in thread-local storage for profilers, as a pointer to a
 * record, which is NULL while the thread has no context. Two forms are known:
 *   OTEP 4947  the variable otel_thread_ctx_v1 (open-telemetry/opentelemetry-specification,
 *              oteps/profiles/4947-thread-ctx.md, as merged on 2026-07-17)
 *   Elastic    elastic_apm_profiling_correlation_tls_v1 (elastic/apm,
 *              specs/agents/universal-profiling-integration.md)
 * The process context of OTEP 4719, which tells the names of a record's attributes, is not read:
 * the ids need no names.
 *
 * The agent's thread looks for the variables among the loaded libraries (trace_tls.c). Handlers
 * compute the variable's address in the calling thread without a call into libc (trace_tls_sig.c):
 * the first access to such a variable may allocate memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TRACE_TLS_UNKNOWN (~0ull)
#define TRACE_TLS_PLACES  4u /* class loaders may each have loaded a library of their own */

enum trace_tls_form {
	TRACE_TLS_OTEP,
	TRACE_TLS_ELASTIC,
};

/* Where a variable is. */
struct trace_tls_place {
	/* its entry in the library's symbol table, and the first word of that: what else is there
	 * once the library is unloaded has another */
	uint64_t symbol, symbol_word;
	/* a word that the dynamic linker fills in, for code of the library: the distance from the
	 * thread pointer if the storage is static; 0 = the library has none */
	uint64_t distance_at;
	uint64_t module, offset; /* in dynamic storage */
	/* where the linker has the library's generation: a thread's table of dynamic storage that
	 * is older has no such storage, or that of an unloaded library. 0 = any table will do,
	 * TRACE_TLS_UNKNOWN = none */
	uint64_t generation_at;
	uint32_t form; /* enum trace_tls_form */
};

struct trace_tls_places {
	uint32_t turn; /* odd while the agent's thread changes the rest */
	uint32_t n;
	struct trace_tls_place of[TRACE_TLS_PLACES];
};

/* ---- trace_tls.c: the agent's thread ---- */

/* Begins or ends reading what is published. May be called again. */
void trace_tls_begin(bool wanted);
/* Looks for publishers if libraries were loaded or unloaded. Returns the CPU time that it took, in
 * ns. */
uint64_t trace_tls_tick(uint64_t now_ns);

/* ---- trace_tls_generation.c: the agent's thread ---- */

/* Finds the linker's tables. Not for a callback of dl_iterate_phdr(): dlsym() waits there for a
 * thread in dlopen(), which waits for the end of dl_iterate_phdr(). */
void trace_tls_generation_init(void);
/* Where the linker has the generation at which the library with the number @module was loaded, or
 * TRACE_TLS_UNKNOWN. The place stays as long as the process. Loads must be guarded. */
uint64_t trace_tls_generation_at(uint64_t module);

/* ---- trace_tls_sig.c ---- */

extern struct trace_tls_places trace_tls_sig;
/* Writes what the calling thread publishes as "trace id NUL span id NUL". @java_thread: its
 * JavaThread, 0 = it has none. Returns the bytes; 0 = nothing is published, or the context may be
 * that of another thread. */
uint32_t trace_tls_read_sig(uint64_t java_thread, char *text);
/* The same of one record. */
uint32_t trace_tls_record_sig(enum trace_tls_form form, uint64_t record, char *text);
