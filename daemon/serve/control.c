/* POST /v1/targets/attach and /v1/targets/detach, for `kindling attach` and `detach`. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "daemon/serve/serve_priv.h"

/* The uid is logged with the request. Everybody who can open the socket may make it. */
uid_t uid_of(struct request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(peer);

	if (info)
		(void)getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	return peer.uid;
}

static enum MHD_Result answer_target(struct request *r, const struct target *t)
{
	struct text_out json = { 0 };

	json_begin_object(&json, NULL);
	json_add_i64(&json, "pid", t->jvm.pid);
	json_add_u64(&json, "start_time", t->jvm.start_time);
	json_add_string(&json, "name", t->jvm.name);
	json_add_string(&json, "state", target_state_names[t->state]);
	json_end_object(&json);
	return answer_json(r, 202, &json);
}

enum MHD_Result serve_control(struct request *r, const char *method, const char *verb)
{
	struct fault why = { 0 };
	struct target *t;
	int error;
	bool attach = strcmp(verb, "attach") == 0;

	if (!attach && strcmp(verb, "detach") != 0)
		return answer_error(
			r, 404,
			"there is no targets/%s; there are targets/attach and targets/detach",
			verb);
	if (strcmp(method, "POST") != 0)
		return answer_error(r, 405, "%s takes POST", verb);
	t = api_one_target(r, argument(r, "target"));
	if (!t)
		return MHD_YES;
	if (attach)
		error = target_attach(t, uid_of(r), &why);
	else
		error = target_detach_for(t, uid_of(r));
	if (error == 0)
		return answer_target(r, t);
	if (error == -ESRCH)
		return answer_error(r, 409, "process %d has ended", t->jvm.pid);
	if (error == -EAGAIN)
		return answer_error(r, 409,
				    "process %d is being detached just now; try again in a second",
				    t->jvm.pid);
	if (error == -ESHUTDOWN)
		return answer_error(r, 503, "kindlingd is stopping");
	if (error == -EPERM)
		return answer_error(r, 403, "process %d may not be profiled: %s", t->jvm.pid,
				    why.what);
	return answer_error(r, 500, "process %d: %s", t->jvm.pid, strerror(-error));
}
