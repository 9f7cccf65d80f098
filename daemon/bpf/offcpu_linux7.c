/* The other object of offcpu.bpf.c; its skeleton has the same type. A file of its own because both
 * headers define the same functions. */
#include "daemon/bpf/bpf_priv.h"

#include "offcpu_linux7.skel.h"

struct offcpu_bpf *offcpu_linux7_open(void)
{
	return offcpu_bpf__open();
}
