/* SPDX-License-Identifier: MIT */
/* A folder of state, the log that its use leaves, and processes that share it. */
#ifndef STATE_RIG_H
#define STATE_RIG_H

#include "mcpvisor/state.h"

#include "mcpvisor/log.h"
#include "temp_rig.h"

#include <dirent.h>
#include <sys/wait.h>
#include <time.h>

#define RIG_CROWD 4

static struct temp dir;
static unsigned rig_lines; /* logged at notice or above since rig_open */
static char rig_line[1024];

static inline void
rig_on_line(enum log_level level, const char *line, size_t len, void *arg)
{
	(void)arg;
	(void)len;
	if (level <= LOG_LV_NOTICE) {
		rig_lines++;
		snprintf(rig_line, sizeof rig_line, "%s", line);
	}
}

static inline void
rig_open(void)
{
	temp_make(&dir);
	rig_lines = 0;
	rig_line[0] = '\0';
	log_set_level(LOG_LV_DEBUG);
	log_set_sink(rig_on_line, NULL);
}

static inline void
rig_close(void)
{
	log_set_sink(NULL, NULL);
	temp_remove(&dir);
}

/* Files of a folder whose names begin with head. */
static inline unsigned
rig_count(const char *folder, const char *head)
{
	DIR *d = opendir(temp_path(&dir, folder));
	struct dirent *e;
	unsigned n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.' && strncmp(e->d_name, head, strlen(head)) == 0;
	closedir(d);
	return n;
}

static inline void
rig_set_age(const char *name, time_t seconds)
{
	struct timespec ts[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_nsec = 0}};

	ts[1] = ts[0];
	ck_assert_int_eq(
	    utimensat(AT_FDCWD, temp_path(&dir, name), ts, AT_SYMLINK_NOFOLLOW), 0);
}

/* Runs fn in several processes at once and waits for their good end. */
static inline void
rig_crowd(void (*fn)(unsigned who))
{
	for (unsigned i = 0; i < RIG_CROWD; i++) {
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			fn(i);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < RIG_CROWD; i++) {
		int status = -1;

		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
}

#endif
