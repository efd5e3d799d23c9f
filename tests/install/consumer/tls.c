/* SPDX-License-Identifier: MIT */
/* An outside program that uses the library at the edge: a context, then the library's version. */
#include <rophive/hive.h>
#include <rophive/tls.h>

#include <stdio.h>

int main(void)
{
	struct hive_tls_context *context;

	if (hive_tls_context_create(NULL, &context) != 0)
		return 1;
	hive_tls_context_destroy(context);
	printf("%s\n", hive_version());
	return 0;
}
