/*
 * Where this host keeps the certificates of authorities that it trusts. A libcurl that came with
 * kindling knows the place of the distribution that it was built for alone.
 */
#pragma once

/* The first of @files (ends with NULL) that this process may read, or NULL. */
const char *trust_first(const char *const *files);

/* The host's file for CURLOPT_CAINFO, or NULL: what libcurl was built with has to do. Static text.
 */
const char *trust_file(void);
