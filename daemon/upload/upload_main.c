/*
 * kindling-upload: reads settings and secrets as root, switches to an account of its own, and
 * delivers until kindlingd-data closes its end of the socket. See upload.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "daemon/core/heap.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/report/json_out.h"
#include "daemon/upload/aws_keys.h"
#include "daemon/upload/cloud.h"
#include "daemon/upload/multi.h"
#include "daemon/upload/secrets.h"
#include "daemon/upload/upload.h"
#include "daemon/upload/upload_message.h"
#include "daemon/upload/upload_rights.h"

#define GIVE_BACK_S 60

/* ---- to kindlingd-data ----------------------------------------------------------------------- */

static void upload_send_answer(struct upload *u, struct upload_answer *a)
{
	size_t len = offsetof(struct upload_answer, text) + a->len + 1;

	a->text[a->len] = '\0';
	/* if kindlingd-data does not accept it now, it is sent again in a second */
	(void)send(u->fd, a, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void upload_send_status(struct upload *u)
{
	static struct upload_answer a;
	CLEANUP(freep) char *text = NULL;
	struct text_out t = { 0 };
	size_t len;

	json_begin_list(&t, NULL);
	for (unsigned i = 0; i < u->n_sinks; i++)
		sink_status(u->sinks[i], &t);
	json_end_list(&t);
	if (text_take(&t, &text, &len) < 0 || len >= sizeof(a.text))
		return;
	memset(&a, 0, offsetof(struct upload_answer, text));
	a.say = UPLOAD_STATUS;
	a.len = (uint32_t)len;
	memcpy(a.text, text, len);
	upload_send_answer(u, &a);
}

static void upload_send_test(struct upload *u, const char *name, bool ok, const char *why)
{
	static struct upload_answer a;

	memset(&a, 0, offsetof(struct upload_answer, text));
	a.say = UPLOAD_TESTED;
	a.ok = ok;
	snprintf(a.name, sizeof(a.name), "%s", name);
	a.len = (uint32_t)snprintf(a.text, SINK_TEXT_MAX, "%s", why);
	if (a.len >= SINK_TEXT_MAX)
		a.len = SINK_TEXT_MAX - 1;
	upload_send_answer(u, &a);
}

static void upload_test_done(struct upload *u, const struct sink *s, bool ok, const char *why)
{
	upload_send_test(u, s->config->name, ok, why);
}

/* ---- from kindlingd-data --------------------------------------------------------------------- */

static bool upload_spool_is_gone(const struct upload *u)
{
	bool gone = false;

	for (unsigned i = 0; i < u->n_sinks; i++)
		gone |= sink_is_gone(u->sinks[i]);
	return gone && access(u->config->state_dir, X_OK) == 0;
}

/* What only root can do is done at the start, and kindlingd starts this program again. NULL = there
 * is nothing to do. */
static const char *upload_why_begin_again(const struct upload *u)
{
	if (upload_spool_is_gone(u))
		return "the spool was removed";
	return secrets_have_changed() ? "a secret's file has changed" : NULL;
}

static void upload_tick(struct upload *u, const struct upload_question *q)
{
	const char *why = upload_why_begin_again(u);
	static unsigned ticks;

	if (why) {
		log_info("upload.begins_again", "why=%s", log_str(why));
		loop_stop(u->loop, 0);
		return;
	}
	u->settled_real_ns = q->settled_real_ns;
	for (unsigned i = 0; i < u->n_sinks; i++) {
		sink_not_stored(u->sinks[i], q->not_stored);
		if (u->sinks[i]->type && u->sinks[i]->type->tick && !u->sinks[i]->dead[0])
			u->sinks[i]->type->tick(u->sinks[i]);
		else
			take_run(u->sinks[i], u->settled_real_ns);
		sink_run(u->sinks[i]);
	}
	upload_send_status(u);
	if (++ticks % GIVE_BACK_S == 0)
		heap_give_back();
}

static void upload_test(struct upload *u, struct upload_question *q)
{
	int r = -ENOENT;

	q->name[sizeof(q->name) - 1] = '\0';
	for (unsigned i = 0; i < u->n_sinks; i++)
		if (strcmp(u->sinks[i]->config->name, q->name) == 0)
			r = sink_test(u->sinks[i]);
	if (r < 0)
		upload_send_test(u, q->name, false,
				 r == -ENOENT  ? "there is no such sink"
				 : r == -EBUSY ? "it is being tested already"
					       : strerror(-r));
}

/* Passes the answer on to all sinks; each ignores keys that are not its own. */
static void upload_recorded(struct upload *u, const void *message, int fd)
{
	struct upload_recorded a;

	memcpy(&a, message, sizeof(a));
	a.text[sizeof(a.text) - 1] = '\0';
	for (unsigned i = 0; i < u->n_sinks; i++)
		if (u->sinks[i]->type && u->sinks[i]->type->recorded && !u->sinks[i]->dead[0])
			u->sinks[i]->type->recorded(u->sinks[i], &a, fd);
}

/* Like recv(); *ret_fd is the descriptor that came with the message, or -1. */
static ssize_t upload_receive(int socket, void *to, size_t size, int *ret_fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec io = { to, size };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*ret_fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return n;
}

static void upload_on_question(void *userdata, uint32_t events)
{
	_Static_assert(sizeof(struct upload_recorded) != sizeof(struct upload_question) &&
			       sizeof(struct upload_recorded) <= 512,
		       "known by their lengths");
	struct upload *u = userdata;
	union {
		struct upload_question q;
		char bytes[512];
	} message;
	CLEANUP(fd_closep) int fd = -1;
	ssize_t n = upload_receive(u->fd, &message, sizeof(message), &fd);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(struct upload_recorded))
		upload_recorded(u, &message, fd);
	else if (n !=
		 (ssize_t)sizeof(
			 message.q)) /* 0: kindlingd-data has ended, or wants this program to end */
		loop_stop(u->loop, 0);
	else if (message.q.ask == UPLOAD_TICK)
		upload_tick(u, &message.q);
	else if (message.q.ask == UPLOAD_TEST)
		upload_test(u, &message.q);
}

/* ---- as root --------------------------------------------------------------------------------- */

/* Creates the directory that a sink writes in, for the account of this program. */
static void upload_make_directory(const struct config_sink *c, const char *state_dir,
				  const struct rights *r)
{
	char path[sizeof(c->directory)];
	size_t top_len = strlen(state_dir);

	snprintf(path, sizeof(path), "%s", c->directory);
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(path, 0755);
		*p = '/';
	}
	if (mkdir(path, 0750) == 0 && chown(path, r->uid, r->gid) < 0)
		(void)rmdir(path);
	/* a service manager gives everything in its StateDirectory= to root at each start */
	else if (strncmp(path, state_dir, top_len) == 0 && path[top_len] == '/')
		(void)rights_give_beneath(state_dir, path + top_len + 1, r);
}

static int upload_settings(struct config *c, const char *state_dir, const char *file)
{
	char error[512];

	config_defaults(c);
	if (config_load(c, file, error, sizeof(error)) < 0) {
		log_err("upload.settings", "error=%s", log_str(error));
		return -EINVAL;
	}
	snprintf(c->state_dir, sizeof(c->state_dir), "%s", state_dir);
	log_set_level((enum log_level)c->log_level);
	return 0;
}

static bool upload_needs_programs(const struct config *c)
{
	for (unsigned i = 0; i < c->n_sinks; i++)
		if (c->sinks[i].type == SINK_EXEC)
			return true;
	return false;
}

static void upload_spool_path(const struct config *c, char *buf, size_t size)
{
	snprintf(buf, size, "%s/spool", c->state_dir);
}

/* Chooses the account and gives the spool to it, whoever owned the spool before. */
static int upload_take_spool(const struct config *c, struct rights *ret, struct fault *f)
{
	char path[300];
	int r = rights_find(RIGHTS_UPLOAD_ACCOUNT, ret, f);

	upload_spool_path(c, path, sizeof(path));
	if (r == 0)
		r = rights_give(path, ret);
	if (r == 0) /* its directory may have been removed, and made again by the data process */
		(void)rights_share_history(c->state_dir, ret);
	return r < 0 ? fault_set(f, -r, FAULT_INTERNAL, "give %.120s to uid %u: ", path,
				 (unsigned)ret->uid)
		     : 0;
}

/* Does any S3 sink have no keys in the settings? */
static bool upload_needs_aws(const struct config *c)
{
	for (unsigned i = 0; i < c->n_sinks; i++)
		if (c->sinks[i].type == SINK_S3 && !c->sinks[i].access_key_file[0] &&
		    !c->sinks[i].access_key_env[0])
			return true;
	return false;
}

/* Does all that needs root. If a sink's secrets cannot be read, its @why has the error. */
static int upload_prepare(const struct config *c, struct sink_secrets *secrets,
			  char (*why)[SINK_TEXT_MAX], struct aws_asker **ret_aws)
{
	bool root = strcmp(c->user, "root") == 0;
	struct rights rights = { 0 };
	struct fault f = { 0 };
	int r = 0;

	if (!root && geteuid() == 0)
		r = upload_take_spool(c, &rights, &f);
	if (r < 0) {
		log_err("upload.rights", "error=%s", log_str(f.what));
		return r;
	}
	for (unsigned i = 0; i < c->n_sinks; i++) {
		(void)secrets_read(&c->sinks[i], &secrets[i], why[i], sizeof(why[i]));
		if (c->sinks[i].type == SINK_FILES)
			upload_make_directory(&c->sinks[i], c->state_dir, &rights);
	}
	(void)umask(027);
	if (upload_needs_aws(c))
		r = aws_asker_new(ret_aws);
	if (r == 0 && geteuid() == 0)
		r = upload_give_up_rights(&rights, root, upload_needs_programs(c));
	if (r < 0)
		log_err("upload.rights", "error=%s", log_str(strerror(-r)));
	return r;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static int upload_open_spool(const struct config *c)
{
	char path[300];
	int fd;

	upload_spool_path(c, path, sizeof(path));
	if (mkdir(path, 0750) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

static int upload_open_sinks(struct upload *u, const struct sink_secrets *secrets,
			     char (*why)[SINK_TEXT_MAX])
{
	CLEANUP(fd_closep) int spool_dfd = upload_open_spool(u->config);
	char error[SINK_TEXT_MAX];
	int r = spool_dfd < 0 ? spool_dfd : 0;

	for (unsigned i = 0; i < u->config->n_sinks && r == 0; i++) {
		struct sink *s;

		r = sink_new(u, &u->config->sinks[i], spool_dfd, &secrets[i], &s, error,
			     sizeof(error));
		if (r < 0) {
			log_err("upload.sink", "sink=%s error=%s", u->config->sinks[i].name,
				log_str(error));
			return r;
		}
		if (why[i][0])
			snprintf(s->dead, sizeof(s->dead), "%s", why[i]);
		u->sinks[u->n_sinks++] = s;
	}
	return r;
}

static int upload_run(struct upload *u, const struct sink_secrets *secrets,
		      char (*why)[SINK_TEXT_MAX])
{
	struct loop_source *source = NULL;
	int r = loop_new(&u->loop);

	if (r == 0)
		r = source_open(u->config->state_dir, &u->source);
	if (r == 0)
		r = multi_new(u->loop, &u->multi);
	if (r == 0 && u->config->label_cloud)
		r = cloud_new(u->loop, &u->cloud);
	if (r == 0 && u->aws)
		r = aws_asker_begin(u->aws, u->loop);
	if (r == 0)
		r = upload_open_sinks(u, secrets, why);
	if (r == 0)
		r = loop_add(u->loop, u->fd, EPOLLIN, upload_on_question, u, &source);
	if (r == 0) {
		upload_send_status(u);
		r = loop_run(u->loop);
	}
	loop_source_free(source);
	for (unsigned i = 0; i < u->n_sinks; i++)
		sink_free(u->sinks[i]);
	multi_free(u->multi);
	cloud_free(u->cloud);
	aws_asker_free(u->aws);
	source_free(u->source);
	loop_free(u->loop);
	return r;
}

int main(int argc, char **argv)
{
	static struct config config;
	static struct sink_secrets secrets[SINKS_MAX];
	static char why[SINKS_MAX][SINK_TEXT_MAX];
	static struct upload u = { .fd = UPLOAD_FD,
				   .config = &config,
				   .on_test = upload_test_done };
	int r;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("kindling-upload " KINDLING_VERSION) < 0;
	/* this program ends when kindlingd-data closes the socket; signals to the process group
	 * are meant for the daemon */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc != 3 || fcntl(UPLOAD_FD, F_SETFD, FD_CLOEXEC) < 0) {
		fputs("kindling-upload is started by kindlingd, and does nothing by itself\n",
		      stderr);
		return 2;
	}
	/* When kindlingd dies, work in progress is given up: the next process uses the same
	 * spool, which is made for that. Set at once, because a secret's file may keep
	 * upload_prepare() waiting. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	heap_begin(HEAP_WORK);
	(void)umask(022);
	r = upload_settings(&config, argv[1], argv[2]);
	if (r == 0)
		r = upload_prepare(&config, secrets, why, &u.aws);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* the change of the user clears it */
	if (r == 0)
		r = upload_run(&u, secrets, why);
	if (r < 0)
		log_err("upload.end", "error=%s", log_str(strerror(-r)));
	return r < 0 ? 1 : 0;
}
