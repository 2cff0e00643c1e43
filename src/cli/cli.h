/* The command line `ferry`. */
#pragma once

/* Runs the verb that argv names; returns the exit code of the program. */
int cli_main(int argc, char **argv);
