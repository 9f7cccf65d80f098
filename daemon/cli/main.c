/* main() of kindling. Everything else is in cli.c, where tests can reach it. */
#include "daemon/cli/cli.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}
