/* SPDX-License-Identifier: MIT */
/* Preloaded: /etc/resolv.conf is the file that $RESOLV_ELSEWHERE names. For tests of what
 * a name server does to the daemon, which no option of ours can choose. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef int (*open_fn)(const char *path, int flags, ...);

static const char *
elsewhere(const char *path)
{
	const char *other = getenv("RESOLV_ELSEWHERE");

	return other && strcmp(path, "/etc/resolv.conf") == 0 ? other : path;
}

#define OPEN(name)                                                                       \
	int name(const char *path, int flags, ...)                                       \
	{                                                                                \
		open_fn real = (open_fn)dlsym(RTLD_NEXT, #name);                         \
		va_list ap;                                                              \
		int mode;                                                                \
                                                                                         \
		va_start(ap, flags);                                                     \
		mode = flags & O_CREAT ? va_arg(ap, int) : 0;                            \
		va_end(ap);                                                              \
		return real(elsewhere(path), flags, mode);                               \
	}

OPEN(open)
OPEN(open64)
