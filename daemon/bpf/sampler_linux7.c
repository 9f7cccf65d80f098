/* The other object of sampler.bpf.c; its skeleton has the same type. A file of its own because both
 * headers define the same functions. */
#include "daemon/bpf/bpf_priv.h"

#include "sampler_linux7.skel.h"

struct sampler_bpf *sampler_linux7_open(void)
{
	return sampler_bpf__open();
}
