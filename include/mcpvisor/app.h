/* SPDX-License-Identifier: MIT */
/* The commands of the binary, as one table, and what they share. */
#ifndef MCPVISOR_APP_H
#define MCPVISOR_APP_H

/* Parses the command line, runs the command and returns the exit code. */
int app_main(int argc, char **argv);

#endif
