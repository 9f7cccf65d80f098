/*
 * Finds the file with the certificate authorities that this host trusts. The libcurl that comes
 * with kindling knows only the path of the distribution that it was built for.
 */
#pragma once

/* The first of @files (ends with NULL) that this process may read, or NULL. */
const char *trust_first(const char *const *files);

/* The host's file for CURLOPT_CAINFO, a static text; NULL = none: libcurl uses its default. */
const char *trust_file(void);
