/*
 * See vmtables.h. Each table is an array of rows, ended by one without a name. Exported variables
 * of libjvm give its address, the size of a row and the offsets of the columns.
 */
#include "injector/vmtables.h"

#define ROWS_MAX 20000 /* no table has more rows */

enum { FIRST_ROW, STRIDE, NAME, VARIABLES_MAX = 6 };
/* the columns of each table follow those three */
enum { FIELD = NAME + 1, OFFSET, ADDRESS };
enum { SIZE = NAME + 1 };
enum { VALUE = NAME + 1 };

static const char *const structs[] = {
	[FIRST_ROW] = "gHotSpotVMStructs",
	[STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[NAME] = "gHotSpotVMStructEntryTypeNameOffset",
	[FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
};
static const char *const types[] = {
	[FIRST_ROW] = "gHotSpotVMTypes",
	[STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[SIZE] = "gHotSpotVMTypeEntrySizeOffset",
};
static const char *const constants[] = {
	[FIRST_ROW] = "gHotSpotVMIntConstants",
	[STRIDE] = "gHotSpotVMIntConstantEntryArrayStride",
	[NAME] = "gHotSpotVMIntConstantEntryNameOffset",
	[VALUE] = "gHotSpotVMIntConstantEntryValueOffset",
};

struct vm_table {
	struct vmmemory *m;
	uint64_t variables[VARIABLES_MAX];
	uint64_t row, name; /* addresses of the current row and its name */
	unsigned rows; /* rows read so far */
};

static struct vm_table open_table(struct vmmemory *m, const char *const names[], size_t n)
{
	struct vm_table t = { .m = m };

	vmmemory_variables(m, names, t.variables, n);
	for (size_t i = 0; i < n; i++)
		t.variables[i] = vmmemory_word(m, t.variables[i]);
	t.row = t.variables[FIRST_ROW] - t.variables[STRIDE];
	return t;
}

static uint64_t vmtables_cell(const struct vm_table *t, unsigned column)
{
	return vmmemory_word(t->m, t->row + t->variables[column]);
}

static bool next_row(struct vm_table *t)
{
	if (!t->variables[FIRST_ROW] || !t->variables[STRIDE] || t->rows++ >= ROWS_MAX)
		return false;
	t->row += t->variables[STRIDE];
	t->name = vmtables_cell(t, NAME);
	return t->name != 0;
}

void vmtables_fields(struct vmmemory *m, struct vmtables_field *fields, size_t n)
{
	struct vm_table t = open_table(m, structs, ARRAY_SIZE(structs));

	for (size_t left = n; left > 0 && next_row(&t);)
		for (size_t i = 0; i < n; i++) {
			if (!vmmemory_is(m, t.name, fields[i].type) ||
			    !vmmemory_is(m, vmtables_cell(&t, FIELD), fields[i].field))
				continue;
			left -= !fields[i].found;
			fields[i].found = true;
			fields[i].offset = vmtables_cell(&t, OFFSET);
			fields[i].address = vmtables_cell(&t, ADDRESS);
		}
}

uint64_t vmtables_size(struct vmmemory *m, const char *type)
{
	struct vm_table t = open_table(m, types, ARRAY_SIZE(types));

	while (next_row(&t))
		if (vmmemory_is(m, t.name, type))
			return vmtables_cell(&t, SIZE);
	return 0;
}

bool vmtables_constant(struct vmmemory *m, const char *name, int32_t *ret)
{
	struct vm_table t = open_table(m, constants, ARRAY_SIZE(constants));

	while (next_row(&t))
		if (vmmemory_is(m, t.name, name))
			return vmmemory_read(m, t.row + t.variables[VALUE], ret, sizeof(*ret));
	return false;
}
