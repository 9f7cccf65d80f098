/* POST /v1/settings/reload, for `kindling config reload` and systemctl reload. */
#include <stdlib.h>
#include <string.h>
#include "daemon/serve/serve_priv.h"

static enum MHD_Result answer_changes(struct request *r, const struct config_changes *c)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "changed");

	for (unsigned i = 0; i < c->n; i++) {
		cJSON *change = cJSON_CreateObject();

		cJSON_AddStringToObject(change, "name", c->list[i].name);
		cJSON_AddStringToObject(change, "from", c->list[i].from);
		cJSON_AddStringToObject(change, "to", c->list[i].to);
		cJSON_AddStringToObject(change, "when", config_when_names[c->list[i].when]);
		cJSON_AddItemToArray(list, change);
	}
	return answer_json(r, 200, o);
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
