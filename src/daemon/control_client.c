/* SPDX-License-Identifier: MIT */
/*
 * The command line's side of the control socket.
 *
 * Owns: a connection while it asks. Driven by: its caller, which waits.
 * Invariants: every wait has an end; of a connection that becomes MCP's nothing is read
 * beyond the daemon's answer.
 */
#include "mcpvisor/control.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>

#define ASK_MS	  5000
#define RELOAD_MS 30000

struct asking {
	const char *path;
	int fd;
	uint64_t until_ms;
	struct mv_errtext *et;
};

/* MV_TIMEOUT, or MV_OK: it can be tried. */
static enum mv_err
asking_wait(struct asking *a, short events)
{
	struct pollfd p = {.fd = a->fd, .events = events};
	int n;

	do {
		uint64_t now = clock_now_ms();

		if (now >= a->until_ms)
			break;
		n = poll(&p, 1, (int)(a->until_ms - now));
		if (n > 0)
			return MV_OK;
	} while (n == 0 || errno == EINTR);
	mv_errtext_set(a->et, "%s: the daemon does not answer in time", a->path);
	return MV_TIMEOUT;
}

static enum mv_err
asking_fail(struct asking *a, int errnum)
{
	mv_errtext_set(a->et, "%s: %s", a->path,
	    errnum == EAGAIN ? "too many others ask it" : strerrordesc_np(errnum));
	errno = errnum;
	return errnum == ENOENT || errnum == ECONNREFUSED || errnum == EPIPE ||
		       errnum == ECONNRESET
		   ? MV_CLOSED
		   : MV_SYSTEM;
}

static enum mv_err
asking_connect(struct asking *a)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strlen(a->path);

	if (n == 0 || n >= sizeof(to.sun_path)) {
		mv_errtext_set(a->et, "\"%s\" is not the path of a socket", a->path);
		return MV_CONF;
	}
	memcpy(to.sun_path, a->path, n + 1);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0 || connect(a->fd, (const struct sockaddr *)&to, sizeof(to)) != 0)
		return asking_fail(a, errno);
	return MV_OK;
}

bool
control_is_there(const char *path)
{
	struct mv_errtext et = {.line = 0};
	struct asking a = {.path = path, .fd = -1, .et = &et};
	/* A full backlog is somebody's. */
	bool there = asking_connect(&a) == MV_OK || (a.fd >= 0 && errno == EAGAIN);

	if (a.fd >= 0)
		(void)close(a.fd);
	return there;
}

static enum mv_err
asking_write(struct asking *a, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(a->fd, p, n, MSG_NOSIGNAL);
		enum mv_err err;

		if (sent >= 0) {
			p += sent;
			n -= (size_t)sent;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return asking_fail(a, errno);
		err = asking_wait(a, POLLOUT);
		if (err != MV_OK)
			return err;
	}
	return MV_OK;
}

/* Reads one line without its end; at most step bytes at a time. */
static enum mv_err
asking_read(struct asking *a, size_t step, struct buf *line)
{
	char bytes[16384];

	for (;;) {
		ssize_t got = recv(a->fd, bytes, step, 0);
		enum mv_err err = MV_OK;

		if (got == 0 || (got < 0 && errno == ECONNRESET)) {
			mv_errtext_set(a->et, "%s: the daemon went away", a->path);
			return MV_CLOSED;
		}
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return asking_fail(a, errno);
		if (got < 0) {
			err = asking_wait(a, POLLIN);
		} else if (bytes[got - 1] == '\n') {
			buf_add(line, bytes, (size_t)got - 1);
			return line->err;
		} else {
			buf_add(line, bytes, (size_t)got);
			err = line->err;
		}
		if (err == MV_TOO_LONG)
			mv_errtext_set(a->et, "%s: the answer is too long", a->path);
		if (err != MV_OK)
			return err;
	}
}

static enum mv_err
asking_do(struct asking *a, const char *request, size_t step, struct buf *reply)
{
	enum mv_err err = asking_connect(a);
	bool is_connected = err == MV_OK;

	if (err == MV_OK)
		err = asking_write(a, request, strlen(request));
	if (err == MV_OK)
		err = asking_write(a, "\n", 1);
	/* One that is turned away before it has written can still read why. */
	if (err == MV_OK || (err == MV_CLOSED && is_connected))
		err = asking_read(a, step, reply);
	return err;
}

static uint64_t
asking_limit_ms(const char *request)
{
	json_t *tree = json_loads(request, 0, NULL);
	const char *command = json_string_value(json_object_get(tree, "command"));
	uint64_t ms =
	    command != NULL && strcmp(command, "reload") == 0 ? RELOAD_MS : ASK_MS;

	json_decref(tree);
	return ms;
}

enum mv_err
control_ask(
    const char *path, const char *request, struct buf *reply, struct mv_errtext *et)
{
	struct asking a = {.path = path,
	    .fd = -1,
	    .until_ms = clock_now_ms() + asking_limit_ms(request),
	    .et = et};
	enum mv_err err = asking_do(&a, request, 16384, reply);

	if (a.fd >= 0)
		(void)close(a.fd);
	return err;
}

/* The daemon's words in its refusal. */
static enum mv_err
asking_refused(struct asking *a, json_t *answer)
{
	const char *text = json_string_value(json_object_get(answer, "error"));
	const char *reason = json_string_value(json_object_get(answer, "reason"));

	mv_errtext_set(a->et, "%s: %s", a->path, text ? text : "the daemon refuses");
	return reason != NULL && strcmp(reason, mv_err_reason(MV_NOT_FOUND)) == 0
		   ? MV_NOT_FOUND
		   : MV_UNSUPPORTED;
}

enum mv_err
control_open_mcp(const char *path, const char *profile, int *fd, struct mv_errtext *et)
{
	struct asking a = {
	    .path = path, .fd = -1, .until_ms = clock_now_ms() + ASK_MS, .et = et};
	struct buf request, reply;
	json_t *answer = NULL;
	enum mv_err err;

	*fd = -1;
	buf_init(&request, CONTROL_REQUEST_BYTES);
	buf_init(&reply, CAP_CONTROL_BYTES);
	buf_add_str(&request, "{\"command\":\"mcp\"");
	if (profile != NULL) {
		buf_add_str(&request, ",\"profile\":");
		json_put_string(&request, profile, strlen(profile));
	}
	buf_add_char(&request, '}');
	err = buf_cstr(&request) == NULL ? request.err
					 : asking_do(&a, request.data, 1, &reply);
	if (err == MV_OK) {
		answer = json_loadb(reply.data ? reply.data : "", reply.len, 0, NULL);
		if (!json_is_true(json_object_get(answer, "ok")))
			err = asking_refused(&a, answer);
	}
	if (err == MV_OK) {
		(void)fcntl(a.fd, F_SETFL, fcntl(a.fd, F_GETFL) & ~O_NONBLOCK);
		*fd = a.fd;
		a.fd = -1;
	}
	if (a.fd >= 0)
		(void)close(a.fd);
	json_decref(answer);
	buf_fini(&reply);
	buf_fini(&request);
	return err;
}
