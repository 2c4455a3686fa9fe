/* SPDX-License-Identifier: MIT */
/*
 * What upstreams remember, a file each in the folder "lists".
 *
 * Owns: the files; what of them this process has read or written, by name.
 * Driven by: serve, before an upstream starts and when it says something new.
 * Invariants: a file's name comes of the upstream's name and, keyed, of the process that
 * its conf describes; its header signs name and payload with the folder's key, so that
 * nothing is believed that no process of this folder wrote for just this upstream.
 * Nothing is synced: what a power cut leaves half is no more than missing.
 */
#include "state_priv.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/caps.h"
#include "mcpvisor/file.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/naming.h"
#include "mcpvisor/upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LISTS_NAME    "lists"
#define LISTS_NEW     "new"
#define LISTS_TAIL    ".memory"
#define LISTS_PURPOSE "lists 1"
#define LISTS_MAGIC   "mcpvisor memory "
#define LISTS_VERSION "1 "
#define HEADER_MAX    128
#define NAMED_MAX     64 /* bytes of the upstream's name */
#define DAY_S	      ((time_t)24 * 60 * 60)

/* What a file had when it was last read or written here. */
struct list_kept {
	uint64_t hash;
};

static void
hex_put(char *out, const unsigned char *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[p[i] >> 4];
		*out++ = digits[p[i] & 15];
	}
	*out = '\0';
}

/* ---- names and digests ---- */

/* A key of this purpose alone. */
static void
lists_key(struct state *s, struct mac_key *key)
{
	mac_sign(&s->key, LISTS_PURPOSE, sizeof(LISTS_PURPOSE) - 1, key->bytes);
}

static bool
lists_put_name(
    const struct mac_key *key, const struct upstream_conf *c, char name[STATE_NAME_MAX])
{
	unsigned char mac[MAC_BYTES];
	char hex[17];
	struct buf b;
	bool ok;

	buf_init(&b, CAP_CONF_BYTES);
	upstream_conf_put_identity(c, &b);
	ok = b.err == MV_OK;
	if (ok) {
		mac_sign(key, b.len > 0 ? b.data : "", b.len, mac);
		hex_put(hex, mac, 8);
	}
	if (b.data != NULL)
		explicit_bzero(b.data, b.len);
	buf_reset(&b);
	naming_map(c->name, strlen(c->name), &b);
	ok = ok && b.err == MV_OK;
	if (ok)
		(void)snprintf(name, STATE_NAME_MAX, "%.*s-%s%s",
		    (int)(b.len < NAMED_MAX ? b.len : NAMED_MAX), b.len > 0 ? b.data : "",
		    hex, LISTS_TAIL);
	buf_fini(&b);
	return ok;
}

/* Of a payload: what tells whether it is new, and what goes into the header. */
struct lists_digest {
	uint64_t hash;
	unsigned char mac[MAC_BYTES];
	char signed_text[STATE_NAME_MAX + MAC_BYTES];
	size_t signed_len;
};

static void
lists_digest(const struct mac_key *key, const char *name, const char *p, size_t n,
    struct lists_digest *d)
{
	unsigned char inner[MAC_BYTES];
	size_t len = strlen(name) + 1;

	mac_sign(key, p, n, inner);
	memcpy(&d->hash, inner, sizeof(d->hash));
	memcpy(d->signed_text, name, len);
	memcpy(d->signed_text + len, inner, MAC_BYTES);
	d->signed_len = len + MAC_BYTES;
	mac_sign(key, d->signed_text, d->signed_len, d->mac);
}

static void
lists_note(struct state *s, const char *name, uint64_t hash)
{
	struct list_kept *k = strmap_get(s->lists, name, strlen(name));

	if (k == NULL) {
		k = mem_xcalloc(1, sizeof(*k));
		if (!strmap_put(s->lists, name, strlen(name), k)) {
			mem_free(k);
			return;
		}
	}
	k->hash = hash;
}

/* ---- the folder ---- */

static int
lists_open(struct state *s, bool make)
{
	struct stat st;
	int fd;

	if (make && mkdirat(s->dir, LISTS_NAME, 0700) != 0 && errno != EEXIST &&
	    errno != EROFS)
		return -1;
	fd = openat(s->dir, LISTS_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_uid != geteuid())) {
		(void)close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

/* ---- recall ---- */

/* Reads all of a file that may be believed so far: *text of *n bytes. NULL, or why not.
 */
static const char *
lists_read(int fd, char **text, size_t *n)
{
	struct stat st;
	size_t used = 0;

	if (fstat(fd, &st) != 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "not a regular file";
	if (st.st_uid != geteuid())
		return "somebody else's file";
	if (st.st_size > (off_t)CAP_MEMORY_BYTES + HEADER_MAX)
		return "too large";
	*text = mem_try((size_t)st.st_size + 1);
	if (*text == NULL)
		return mv_err_text(MV_NOMEM);
	while (used < (size_t)st.st_size) {
		ssize_t got = read(fd, *text + used, (size_t)st.st_size - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return strerror(errno);
		if (got == 0)
			break;
		used += (size_t)got;
	}
	*n = used;
	return NULL;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
hex_take(const char *p, size_t n, unsigned char out[MAC_BYTES])
{
	if (n != (size_t)2 * MAC_BYTES)
		return false;
	for (size_t i = 0; i < MAC_BYTES; i++) {
		int high = hex_digit(p[2 * i]), low = hex_digit(p[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

/* Finds and checks the payload of a file. NULL, or why it is none. */
static const char *
lists_check(const struct mac_key *key, const char *name, struct jtext file,
    struct jtext *payload, uint64_t *hash)
{
	static const char magic[] = LISTS_MAGIC, version[] = LISTS_VERSION;
	const char *p = file.p, *end, *space;
	unsigned char mac[MAC_BYTES];
	struct lists_digest d;
	char length[24];

	if (p == NULL || file.n < sizeof(magic) - 1 ||
	    memcmp(p, magic, sizeof(magic) - 1) != 0)
		return "not such a file";
	p += sizeof(magic) - 1;
	if (file.n < sizeof(magic) + sizeof(version) - 2 ||
	    memcmp(p, version, sizeof(version) - 1) != 0)
		return "of another version";
	p += sizeof(version) - 1;
	end = memchr(file.p, '\n', file.n);
	space = end != NULL ? memchr(p, ' ', (size_t)(end - p)) : NULL;
	if (space == NULL || !hex_take(space + 1, (size_t)(end - space - 1), mac))
		return "its header is damaged";
	payload->p = end + 1;
	payload->n = file.n - (size_t)(end + 1 - file.p);
	(void)snprintf(length, sizeof(length), "%zu", payload->n);
	if (strlen(length) != (size_t)(space - p) ||
	    memcmp(p, length, strlen(length)) != 0)
		return "cut, or longer than it says";
	lists_digest(key, name, payload->p, payload->n, &d);
	if (!mac_verify(key, d.signed_text, d.signed_len, mac, MAC_BYTES))
		return "altered, or signed with another key";
	*hash = d.hash;
	return NULL;
}

/* Gives u the payload of an open file. NULL, or why not. */
static const char *
lists_take(struct state *s, const struct mac_key *key, const char *name,
    struct upstream *u, int fd)
{
	struct jtext payload = {NULL, 0};
	const char *fault;
	char *text = NULL;
	size_t n = 0;
	uint64_t hash = 0;
	enum mv_err err;

	fault = lists_read(fd, &text, &n);
	if (fault == NULL)
		fault = lists_check(key, name, (struct jtext){text, n}, &payload, &hash);
	if (fault == NULL) {
		err = upstream_take_memory(u, payload.p, payload.n);
		if (err == MV_PROTOCOL)
			fault = "of another version";
		else if (err != MV_OK)
			fault = mv_err_text(err);
	}
	if (fault == NULL) {
		lists_note(s, name, hash);
		if (!s->only_looks)
			(void)futimens(fd, NULL); /* it is in use */
	}
	mem_free(text);
	return fault;
}

void
state_recall(struct state *s, struct upstream *u)
{
	const struct upstream_conf *c = upstream_conf_of(u);
	const char *fault = NULL;
	char name[STATE_NAME_MAX];
	struct mac_key key;
	int dir, fd;

	if (s->dir < 0 || c->broken != MV_OK || !state_load_key(s))
		return;
	dir = lists_open(s, false);
	if (dir < 0)
		return; /* as nothing was kept yet; else state_remember says why */
	lists_key(s, &key);
	if (lists_put_name(&key, c, name)) {
		/* Of a pipe in its place, an open would not return. */
		fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0)
			fault = lists_take(s, &key, name, u, fd);
		else if (errno != ENOENT)
			fault = strerror(errno);
		if (fault != NULL)
			LOG_NOTICE("state", "lists are not recalled",
			    "upstream=%s file=%s reason=%s",
			    LOG_ESC(c->name, strlen(c->name)), name,
			    LOG_ESC(fault, strlen(fault)));
		if (fd >= 0)
			(void)close(fd);
	}
	mac_key_wipe(&key);
	(void)close(dir);
}

/* ---- remember ---- */

static bool
lists_write(int dir, const char *name, const char *header, const struct buf *payload)
{
	char fresh[STATE_NAME_MAX];
	int fd = state_create(dir, LISTS_NEW, fresh), fault;
	bool ok;

	if (fd < 0)
		return false;
	ok = file_write(fd, header, strlen(header)) &&
	     file_write(fd, payload->data, payload->len);
	fault = errno;
	if (close(fd) != 0 && ok) {
		ok = false;
		fault = errno;
	}
	if (ok && renameat(dir, fresh, dir, name) == 0)
		return true;
	if (ok)
		fault = errno;
	(void)unlinkat(dir, fresh, 0);
	errno = fault;
	return false;
}

/* The first time in a row for all to see. */
static void
lists_complain(struct state *s, const struct upstream_conf *c, const char *fault)
{
	log_event(s->lists_complained ? LOG_LV_DEBUG : LOG_LV_NOTICE, "state",
	    "lists are not kept", "upstream=%s reason=%s",
	    LOG_ESC(c->name, strlen(c->name)), LOG_ESC(fault, strlen(fault)));
	s->lists_complained = true;
}

/* NULL, or why it is not kept. */
static const char *
lists_keep(struct state *s, const struct mac_key *key, const struct upstream_conf *c,
    const struct buf *payload)
{
	const struct list_kept *k;
	char name[STATE_NAME_MAX], header[HEADER_MAX], hex[2 * MAC_BYTES + 1];
	struct lists_digest d;
	const char *fault = NULL;
	int dir;

	if (!lists_put_name(key, c, name))
		return mv_err_text(MV_TOO_LONG);
	dir = lists_open(s, true);
	if (dir < 0)
		return strerror(errno);
	lists_digest(key, name, payload->data, payload->len, &d);
	k = strmap_get(s->lists, name, strlen(name));
	/* Unless somebody has swept it away it only gets its time. */
	if (k == NULL || k->hash != d.hash ||
	    utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW) != 0) {
		hex_put(hex, d.mac, MAC_BYTES);
		(void)snprintf(header, sizeof(header), "%s%s%zu %s\n", LISTS_MAGIC,
		    LISTS_VERSION, payload->len, hex);
		if (lists_write(dir, name, header, payload))
			lists_note(s, name, d.hash);
		else
			fault = strerror(errno);
	}
	(void)close(dir);
	return fault;
}

void
state_remember(struct state *s, const struct upstream *u)
{
	const struct upstream_conf *c = upstream_conf_of(u);
	const char *fault = NULL;
	struct mac_key key;
	struct buf payload;

	if (s->dir < 0 || s->only_looks || c->broken != MV_OK || !state_load_key(s))
		return;
	buf_init(&payload, CAP_MEMORY_BYTES);
	upstream_put_memory(u, &payload);
	if (payload.err != MV_OK) {
		fault = mv_err_text(payload.err);
	} else if (payload.len > 0) {
		lists_key(s, &key);
		fault = lists_keep(s, &key, c, &payload);
		mac_key_wipe(&key);
		if (fault == NULL)
			s->lists_complained = false;
	}
	if (fault != NULL)
		lists_complain(s, c, fault);
	buf_fini(&payload);
}

/* ---- sweep ---- */

struct lists_sweep {
	struct state *s;
	time_t before;
};

static bool
lists_is_unused(
    const struct lists_sweep *w, int dir, const char *name, const struct stat *st)
{
	size_t n = strlen(name), tail = sizeof(LISTS_TAIL) - 1;

	if (n <= tail || strcmp(name + n - tail, LISTS_TAIL) != 0)
		return false;
	if (strmap_get(w->s->lists, name, n) != NULL) {
		/* Ours, for as long as we run, also to those who share the folder. */
		(void)utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW);
		return false;
	}
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       st->st_mtime < w->before;
}

static void
lists_sweep_one(int dir, const char *name, void *arg)
{
	const struct lists_sweep *w = arg;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    lists_is_unused(w, dir, name, &st) && unlinkat(dir, name, 0) == 0)
		LOG_DEBUG("state", "unused lists are removed", "file=%s",
		    LOG_ESC(name, strlen(name)));
}

void
state_sweep(struct state *s, unsigned keep_days)
{
	struct lists_sweep w = {s, time(NULL) - (time_t)keep_days * DAY_S};
	int dir;

	if (s->dir < 0 || s->only_looks)
		return;
	dir = lists_open(s, false);

	if (dir >= 0) {
		state_each_file(dir, lists_sweep_one, &w);
		state_sweep_new(dir, LISTS_NEW);
		(void)close(dir);
	}
	state_sweep_new(s->dir, KEY_NAME);
	state_sweep_new(s->dir, GONE_NAME);
}

static bool
lists_drop(const char *name, size_t n, void *value, void *arg)
{
	(void)name;
	(void)n;
	(void)arg;
	mem_free(value);
	return true;
}

void
state_lists_close(struct state *s)
{
	strmap_each(s->lists, lists_drop, NULL);
	strmap_free(s->lists);
}
