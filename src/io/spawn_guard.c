/* SPDX-License-Identifier: MIT */
/*
 * The guard: a process in each child's group that outlives us and then ends the
 * group.
 *
 * Owns: one descriptor, its end of the pipe that only we can write to.
 * Driven by: the end of that pipe.
 * Invariants: every signal that can be blocked is; nothing of the heap is used;
 * a group that the guard was not moved out of is never touched.
 */
#include "spawn_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define GUARD_WAIT_MS 500
#define GUARD_STEP_MS 10
/* Smaller anonymous mappings are left: the zeroed data of libraries is there. */
#define GUARD_DROP_MIN ((uintptr_t)256 * 1024)

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARD_KEEPS_HEAP 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define GUARD_KEEPS_HEAP 1
#endif

#ifndef GUARD_KEEPS_HEAP
/* One line of /proc/self/maps: "from-to rw-p 00000000 00:00 0   [heap]". */
static void
guard_drop_mapping(const char *line, const char *end)
{
	uintptr_t at[2] = {0, 0}, thread = (uintptr_t)&errno;
	const char *p = line;
	bool heap;

	for (int i = 0; i < 2; i++, p++)
		for (; p < end && *p != '-' && *p != ' '; p++)
			at[i] = at[i] << 4 |
				(uintptr_t)(*p >= 'a' ? *p - 'a' + 10 : *p - '0');
	if (end - p < 8 || p[0] != 'r' || p[1] != 'w' || p[3] != 'p')
		return;
	heap = end[-1] == ']' && end[-2] == 'p' && end[-3] == 'a';
	/* An unnamed line ends with its inode, "0 ", and no path. */
	if (!heap && !(end[-1] == ' ' && end[-2] == '0' && end[-3] == ' '))
		return;
	/* The kernel joins neighbours: above the thread's own data is what the
	 * loader mapped, below it what was mapped since. */
	if (thread >= at[0] && thread < at[1])
		at[1] = (thread & ~(uintptr_t)0xffff) - 0x10000;
	if (at[1] < at[0] || (!heap && at[1] - at[0] < GUARD_DROP_MIN))
		return;
	/* The address comes from the kernel as text: no pointer to derive it from. */
	madvise((void *)at[0], at[1] - at[0], MADV_DONTNEED); /* NOLINT */
}

/* Our copies of pages that mcpvisor later writes to or gives back would stay
 * with us for good: a guard forked during a big message would hold all of it. */
static void
guard_drop_memory(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char text[8192];
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = read(fd, text + have, sizeof(text) - have)) > 0) {
		size_t start = 0;

		have += (size_t)n;
		for (size_t i = 0; i < have; i++) {
			if (text[i] != '\n')
				continue;
			if (i > start)
				guard_drop_mapping(text + start, text + i);
			start = i + 1;
		}
		for (size_t i = start; i < have; i++)
			text[i - start] = text[i];
		have -= start;
	}
	close(fd);
}
#endif

_Noreturn static void
guard_end_group(void)
{
	struct timespec step = {.tv_nsec = GUARD_STEP_MS * 1000000L};
	pid_t group = getpgrp(), self = getpid();

	kill(-group, SIGTERM);
	/* A stopped process takes TERM only when it goes on. */
	kill(-group, SIGCONT);
	for (int ms = 0; ms < GUARD_WAIT_MS; ms += GUARD_STEP_MS) {
		if (!spawn_group_has_others(group, self))
			break;
		nanosleep(&step, NULL);
	}
	kill(-group, SIGKILL);
	_exit(0);
}

_Noreturn void
spawn_guard_run(int fd, pid_t before)
{
	ssize_t n;
	char c;

	prctl(PR_SET_NAME, "mcpvisor-guard");
	if (dup2(fd, STDIN_FILENO) < 0)
		_exit(1);
	spawn_close_from(STDIN_FILENO + 1);
	(void)!chdir("/");
#ifndef GUARD_KEEPS_HEAP
	guard_drop_memory();
#endif
	do
		n = read(STDIN_FILENO, &c, 1);
	while (n > 0 || (n < 0 && errno == EINTR));
	if (getpgrp() == before)
		_exit(0);
	guard_end_group();
}
