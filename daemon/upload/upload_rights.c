/* See upload_rights.h. System calls that are forbidden: rights_filter.c. */
#include "daemon/upload/upload_rights.h"

#include <sys/resource.h>
#include "daemon/ground/confine.h"

int upload_give_up_rights(const struct rights *r, bool keep_user, bool programs)
{
	const struct rlimit none = { 0, 0 };
	int e;

	(void)setrlimit(RLIMIT_CORE, &none); /* it holds secrets */
	(void)setpriority(PRIO_PROCESS, 0, 10); /* nobody waits for its work */
	if (keep_user)
		e = confine_capabilities(0);
	else
		e = confine_become(r->uid, r->gid, r->account[0] ? r->account : NULL, 0);
	return e < 0 ? e : rights_filter_upload(programs);
}
