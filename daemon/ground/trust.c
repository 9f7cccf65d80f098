/* See trust.h. */
#include "daemon/ground/trust.h"

#include <stddef.h>
#include <unistd.h>

const char *trust_first(const char *const *files)
{
	for (; *files; files++)
		if (access(*files, R_OK) == 0)
			return *files;
	return NULL;
}

const char *trust_file(void)
{
	static const char *const files[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Alpine, Arch, our image */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
		"/etc/pki/tls/certs/ca-bundle.crt", /* older Fedora, RHEL */
		"/etc/ssl/ca-bundle.pem", /* SUSE */
		NULL,
	};

	return trust_first(files);
}
