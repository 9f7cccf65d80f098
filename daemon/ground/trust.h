/*
 * Where this host keeps the certificates of the authorities that it trusts. The libcurl that comes
 * with kindling knows only the place of the distribution that it was built for.
 */
#pragma once

/* The first of @files (ends with NULL) that this process may read, or NULL. */
const char *trust_first(const char *const *files);

/* The host's file for CURLOPT_CAINFO, or NULL: what libcurl was built with has to do. Static text.
 */
const char *trust_file(void);
