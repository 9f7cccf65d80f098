/* The object of offcpu.bpf.c without kernel functions; see offcpu_linux7.c. */
#include "daemon/bpf/bpf_priv.h"

#include "offcpu_linux5.skel.h"

struct offcpu_bpf *offcpu_linux5_open(void)
{
	return offcpu_bpf__open();
}
