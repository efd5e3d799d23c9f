/* SPDX-License-Identifier: MIT */
/* The hash of a directory tree: a task for each file and each directory, all in one group. The first error fails the group: what has not begun
 * never will, and who waits is told why. Without an argument it makes 20 files, hashes them, and again with a link to nowhere. */
#include <dirent.h>
#include <errno.h>
#include <rophive/hive.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct hive_group group;
static _Atomic uint64_t sum; /* of all files: so their order does not matter */
static void visit(void *arg);

static int run(const char *folder, const char *name)
{
	char *path = malloc(strlen(folder) + strlen(name) + 2); /* freed by its task, or by the drop hook */

	if (!path)
		return -ENOMEM;
	sprintf(path, "%s/%s", folder, name);
	hive_group_run(&group, visit, path);
	return 0;
}

static int walk(const char *path)
{
	DIR *folder = opendir(path);
	int r = folder ? 0 : -errno;

	for (struct dirent *one; r == 0 && (one = readdir(folder));)
		if (strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0)
			r = run(path, one->d_name);
	if (folder)
		closedir(folder);
	return r;
}

static int hash_file(const char *path)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	FILE *file = fopen(path, "rb");
	int c;

	if (!file)
		return -errno;
	for (const char *at = path; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
	while ((c = getc(file)) != EOF && hive_group_error(&group) == 0) /* no further when it is for nothing */
		hash = (hash ^ (unsigned char)c) * UINT64_C(1099511628211);
	sum += hash;
	int r = ferror(file) ? -EIO : 0;
	fclose(file);
	return r;
}

/* A compute worker: calls that block are allowed. Links are followed to files only. */
static void visit(void *arg)
{
	char *path = arg;
	struct stat it, target;
	int r = lstat(path, &it) < 0 || stat(path, &target) < 0 ? -errno : 0;

	if (r == 0 && S_ISDIR(it.st_mode))
		r = walk(path);
	else if (r == 0 && S_ISREG(target.st_mode))
		r = hash_file(path);
	if (r < 0)
		hive_group_fail(&group, r);
	free(path);
}

static void on_drop(void *arg, const struct hive_task *task)
{
	(void)arg;
	free(task->arg); /* all tasks of this program have a path */
}

static int hash_tree(struct hive *hive, const char *path)
{
	sum = 0;
	hive_group_init(&group, hive, HIVE_COMPUTE);
	int r = run(path, ".");
	r = r < 0 ? r : hive_group_wait(&group, HIVE_FOREVER);
	printf("%016llx %s %s\n", (unsigned long long)sum, path, r < 0 ? hive_error_text(r) : "");
	return r;
}

static int check(struct hive *hive, const char *folder)
{
	char path[64], *name = path + snprintf(path, sizeof path, "%s/", folder);
	FILE *file;

	for (int i = 0; i < 20 && sprintf(name, "%d", i) > 0 && (file = fopen(path, "w")); i++)
		fprintf(file, "file %d\n", i), fclose(file);
	int wrong = hash_tree(hive, folder) < 0;
	uint64_t before = sum;
	wrong |= hash_tree(hive, folder) < 0 || sum != before;
	strcpy(name, "link");
	wrong |= symlink("nowhere", path) < 0 || hash_tree(hive, folder) != -ENOENT || unlink(path) < 0;
	for (int i = 0; i < 20 && sprintf(name, "%d", i) > 0; i++)
		wrong |= unlink(path) < 0;
	return wrong | (rmdir(folder) < 0);
}

int main(int argc, char **argv)
{
	struct hive_options options = { .on_drop = on_drop };
	char folder[] = "/tmp/rophive-hash-XXXXXX";
	struct hive *hive;

	if (hive_runtime_start(&options, &hive) < 0 || (argc < 2 && !mkdtemp(folder)))
		return 1;
	int wrong = argc > 1 ? hash_tree(hive, argv[1]) < 0 : check(hive, folder);
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || wrong;
}
