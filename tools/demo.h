/* SPDX-License-Identifier: MIT */
#pragma once

/* `hive demo` */
int demo_main(int argc, char **argv);
