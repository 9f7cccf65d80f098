/* Which of the two walkers it is. */
#include "agent/walker/walk_priv.h"

walk_fn *walk_with_sig;

void walk_sig(struct walk *w, void *ucontext)
{
	w->n = 0;
	w->broken = NULL;
	w->virtual_id = 0;
	w->virtual_name[0] = '\0';
	unwind_enter_sig();
	walk_with_sig(w, ucontext);
	unwind_leave_sig();
}
