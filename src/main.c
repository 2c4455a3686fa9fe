/* SPDX-License-Identifier: MIT */
/* The entry of the process; everything else is daemon/app.c. */
#include "mcpvisor/app.h"

int
main(int argc, char **argv)
{
	return app_main(argc, argv);
}
