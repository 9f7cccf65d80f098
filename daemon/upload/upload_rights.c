/* See upload_rights.h. rights_filter.c lists the system calls that are forbidden. */
#include "daemon/upload/upload_rights.h"

#include <sys/resource.h>
#include "daemon/ground/confine.h"

int upload_give_up_rights(const struct rights *r, bool keep_user, bool programs)
{
	const struct rlimit none = { 0, 0 };
	int e;

	(void)setrlimit(RLIMIT_CORE, &none); /* a core file would contain secrets */
	(void)setpriority(PRIO_PROCESS, 0, 10); /* nobody waits for this program */
	if (keep_user)
		e = confine_capabilities(0);
	else
		e = confine_become(r->uid, r->gid, r->account[0] ? r->account : NULL, 0);
	return e < 0 ? e : rights_filter_upload(programs);
}
