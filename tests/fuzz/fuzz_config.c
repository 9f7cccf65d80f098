/* A settings file of arbitrary bytes: the parser must end and return an error sentence that ends
 * in NUL. */
#include <assert.h>
#include <string.h>
#include "daemon/core/config.h"
#include "daemon/core/label_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct labels labels = { 0 };
	static struct config c;
	char err[64], text[100];

	memset(err, 'x', sizeof(err));
	config_defaults(&c);
	if (config_parse(&c, "fuzz", (const char *)data, size, err, sizeof(err)) < 0)
		assert(memchr(err, '\0', sizeof(err)));
	for (unsigned i = 0; i < c.n_rules; i++)
		assert(strlen(config_rule(&c, i, text, sizeof(text))) < sizeof(text));
	for (unsigned i = 0; i < c.n_labels; i++)
		assert(strlen(config_label(&c, i, text, sizeof(text))) < sizeof(text));
	for (unsigned i = 0; i < c.n_label_rules; i++)
		assert(strlen(config_label_rule(&c, i, text, sizeof(text))) < sizeof(text));
	(void)labels_set(&labels, "service", "shop-12-blue");
	label_rules_apply(c.label_rules, c.n_label_rules, "Main", &labels);
	assert(strlen(labels.text) == labels.len);
	for (unsigned i = 0; i < c.n_sinks; i++)
		assert(strlen(config_sink_text(&c.sinks[i], text, sizeof(text))) < sizeof(text));
	return 0;
}
