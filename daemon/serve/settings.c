/* POST /v1/settings/reload, for `kindling config reload` and systemctl reload. */
#include <stdlib.h>
#include <string.h>
#include "daemon/serve/serve_priv.h"

static enum MHD_Result answer_changes(struct request *r, const struct config_changes *c)
{
	struct text_out json = { 0 };

	json_begin_object(&json, NULL);
	json_begin_list(&json, "changed");
	for (unsigned i = 0; i < c->n; i++) {
		json_begin_object(&json, NULL);
		json_add_string(&json, "name", c->list[i].name);
		json_add_string(&json, "from", c->list[i].from);
		json_add_string(&json, "to", c->list[i].to);
		json_add_string(&json, "when", config_when_names[c->list[i].when]);
		json_end_object(&json);
	}
	json_end_list(&json);
	json_end_object(&json);
	return answer_json(r, 200, &json);
}

enum MHD_Result serve_settings(struct request *r, const char *method, const char *verb)
{
	CLEANUP(freep) struct config_changes *changes = calloc(1, sizeof(*changes));
	char error[512];

	if (strcmp(verb, "reload") != 0 || !r->serve->reload)
		return answer_error(r, 404, "there is no settings/%s, only settings/reload", verb);
	if (strcmp(method, "POST") != 0)
		return answer_error(r, 405, "settings/reload takes POST");
	if (!changes)
		return answer_error(r, 503, "no memory");
	if (r->serve->reload(r->serve->reload_userdata, changes, error, sizeof(error)) < 0)
		return answer_error(r, 409, "%s", error);
	return answer_changes(r, changes);
}
