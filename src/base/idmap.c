/* SPDX-License-Identifier: MIT */
/*
 * Hash tables by 64-bit integer and by bytes, on one open-addressed table.
 *
 * Owns: the slots, and for a strmap the copies of its keys; never the values.
 * Driven by: whoever routes by id or by name, on the path of every call.
 * Invariants: the slots are a power of two and at most 3/4 full, so a probe
 * always ends; no empty slot lies between an entry and its home (deletion
 * shifts back instead of leaving tombstones); small tables live in the struct.
 */
#include "mcpvisor/idmap.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/err.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define TABLE_FIRST_BITS  4
#define TABLE_FIRST_SLOTS (1u << TABLE_FIRST_BITS)

struct slot {
	uint64_t hash; /* the key itself in an idmap */
	void *p;       /* NULL: empty */
};

struct table {
	struct slot *slots; /* first, or memory of its own */
	unsigned bits;
	unsigned visits; /* table_each calls that run now */
	size_t count;
	struct slot first[TABLE_FIRST_SLOTS];
};

struct idmap {
	struct table t;
};

struct strmap {
	struct table t; /* of struct strkey */
};

struct strkey {
	void *value;
	size_t len;
	char bytes[];
};

static size_t
table_mask(const struct table *t)
{
	return ((size_t)1 << t->bits) - 1;
}

/* Multiplicative hashing spreads the sequential ids that we hand out. */
static size_t
table_home(const struct table *t, uint64_t hash)
{
	return (size_t)((hash * 0x9e3779b97f4a7c15ULL) >> (64 - t->bits));
}

static void
table_init(struct table *t)
{
	t->bits = TABLE_FIRST_BITS;
	t->slots = t->first;
}

static void
table_fini(struct table *t)
{
	MCPVISOR_ASSERT(t->visits == 0);
	if (t->slots != t->first)
		mem_free(t->slots);
}

static void
table_insert(struct table *t, uint64_t hash, void *p)
{
	size_t mask = table_mask(t);
	size_t i = table_home(t, hash);

	while (t->slots[i].p != NULL)
		i = (i + 1) & mask;
	t->slots[i] = (struct slot){.hash = hash, .p = p};
	t->count++;
}

/* Room for one more. */
static bool
table_reserve(struct table *t)
{
	size_t n = table_mask(t) + 1;
	struct slot *old = t->slots;
	struct slot *slots;

	if (t->count + 1 <= n / 4 * 3)
		return true;
	if (n > SIZE_MAX / 2 / sizeof(*slots))
		return false;
	slots = mem_try(2 * n * sizeof(*slots));
	if (slots == NULL)
		return false;
	memset(slots, 0, 2 * n * sizeof(*slots));
	t->slots = slots;
	t->bits++;
	t->count = 0;
	for (size_t i = 0; i < n; i++) {
		if (old[i].p != NULL)
			table_insert(t, old[i].hash, old[i].p);
	}
	if (old != t->first)
		mem_free(old);
	return true;
}

static bool
table_add(struct table *t, uint64_t hash, void *p)
{
	/* A table that grows or fills holes would break the order of a visit. */
	MCPVISOR_ASSERT(t->visits == 0);
	if (!table_reserve(t))
		return false;
	table_insert(t, hash, p);
	return true;
}

static void
table_remove(struct table *t, size_t hole)
{
	size_t mask = table_mask(t);
	size_t i = hole;

	for (;;) {
		i = (i + 1) & mask;
		if (t->slots[i].p == NULL)
			break;
		/* An entry may move back to the hole if its home is not past it. */
		if (((i - table_home(t, t->slots[i].hash)) & mask) >=
		    ((i - hole) & mask)) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole].p = NULL;
	t->count--;
}

/*
 * Walks down from an empty slot: what a deletion shifts then comes only from
 * slots already visited, and no run of entries reaches around the start.
 */
static void
table_each(struct table *t, bool (*fn)(struct slot, const void *), const void *arg)
{
	size_t mask = table_mask(t);
	size_t start = 0;

	while (t->slots[start].p != NULL)
		start++;
	t->visits++;
	for (size_t i = (start - 1) & mask; i != start; i = (i - 1) & mask) {
		if (t->slots[i].p != NULL && !fn(t->slots[i], arg))
			break;
	}
	t->visits--;
}

struct idmap *
idmap_new(void)
{
	struct idmap *m = mem_xcalloc(1, sizeof(*m));

	table_init(&m->t);
	return m;
}

void
idmap_free(struct idmap *m)
{
	if (m == NULL)
		return;
	table_fini(&m->t);
	mem_free(m);
}

static struct slot *
idmap_find(const struct idmap *m, uint64_t key)
{
	size_t mask = table_mask(&m->t);

	for (size_t i = table_home(&m->t, key); m->t.slots[i].p != NULL;
	     i = (i + 1) & mask) {
		if (m->t.slots[i].hash == key)
			return &m->t.slots[i];
	}
	return NULL;
}

bool
idmap_put(struct idmap *m, uint64_t key, void *value)
{
	struct slot *s = idmap_find(m, key);

	MCPVISOR_ASSERT(value != NULL);
	if (s == NULL)
		return table_add(&m->t, key, value);
	s->p = value;
	return true;
}

void *
idmap_get(const struct idmap *m, uint64_t key)
{
	struct slot *s = idmap_find(m, key);

	return s != NULL ? s->p : NULL;
}

void *
idmap_del(struct idmap *m, uint64_t key)
{
	struct slot *s = idmap_find(m, key);
	void *value;

	if (s == NULL)
		return NULL;
	value = s->p;
	table_remove(&m->t, (size_t)(s - m->t.slots));
	return value;
}

size_t
idmap_count(const struct idmap *m)
{
	return m->t.count;
}

struct idmap_visit {
	bool (*fn)(uint64_t key, void *value, void *arg);
	void *arg;
};

static bool
idmap_visit_slot(struct slot s, const void *arg)
{
	const struct idmap_visit *v = arg;

	return v->fn(s.hash, s.p, v->arg);
}

void
idmap_each(struct idmap *m, bool (*fn)(uint64_t key, void *value, void *arg), void *arg)
{
	struct idmap_visit v = {.fn = fn, .arg = arg};

	table_each(&m->t, idmap_visit_slot, &v);
}

/* SipHash-1-3: peers choose the keys and must not be able to make them collide. */
struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t
sip_rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void
sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = sip_rotl(s->v1, 13) ^ s->v0;
	s->v0 = sip_rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = sip_rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = sip_rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = sip_rotl(s->v1, 17) ^ s->v2;
	s->v2 = sip_rotl(s->v2, 32);
}

static void
sip_word(struct sip *s, uint64_t w)
{
	s->v3 ^= w;
	sip_round(s);
	s->v0 ^= w;
}

static uint64_t
sip_hash(const uint64_t k[2], const char *p, size_t n)
{
	struct sip s = {k[0] ^ 0x736f6d6570736575ULL, k[1] ^ 0x646f72616e646f6dULL,
	    k[0] ^ 0x6c7967656e657261ULL, k[1] ^ 0x7465646279746573ULL};
	uint64_t last = (uint64_t)n << 56;
	uint64_t w;

	for (; n >= sizeof(w); p += sizeof(w), n -= sizeof(w)) {
		memcpy(&w, p, sizeof(w));
		sip_word(&s, w);
	}
	for (size_t i = 0; i < n; i++)
		last |= (uint64_t)(unsigned char)p[i] << (8 * i);
	sip_word(&s, last);
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static uint64_t g_strmap_seed[2];
static bool g_strmap_seeded;

static void
strmap_seed(void)
{
	if (g_strmap_seeded)
		return;
	clock_random_bytes(g_strmap_seed, sizeof(g_strmap_seed));
	g_strmap_seeded = true;
}

struct strmap *
strmap_new(void)
{
	struct strmap *m = mem_xcalloc(1, sizeof(*m));

	strmap_seed();
	table_init(&m->t);
	return m;
}

void
strmap_free(struct strmap *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i <= table_mask(&m->t); i++)
		mem_free(m->t.slots[i].p);
	table_fini(&m->t);
	mem_free(m);
}

static struct slot *
strmap_find(const struct strmap *m, uint64_t hash, const char *key, size_t len)
{
	size_t mask = table_mask(&m->t);

	for (size_t i = table_home(&m->t, hash); m->t.slots[i].p != NULL;
	     i = (i + 1) & mask) {
		struct slot *s = &m->t.slots[i];
		const struct strkey *k = s->p;

		if (s->hash == hash && k->len == len &&
		    (len == 0 || memcmp(k->bytes, key, len) == 0))
			return s;
	}
	return NULL;
}

bool
strmap_put(struct strmap *m, const char *key, size_t len, void *value)
{
	uint64_t hash = sip_hash(g_strmap_seed, key, len);
	struct slot *s = strmap_find(m, hash, key, len);
	struct strkey *k;

	MCPVISOR_ASSERT(value != NULL);
	if (s != NULL) {
		k = s->p;
		k->value = value;
		return true;
	}
	if (len > SIZE_MAX - sizeof(*k))
		return false;
	k = mem_try(sizeof(*k) + len);
	if (k == NULL)
		return false;
	k->value = value;
	k->len = len;
	if (len > 0)
		memcpy(k->bytes, key, len);
	if (!table_add(&m->t, hash, k)) {
		mem_free(k);
		return false;
	}
	return true;
}

void *
strmap_get(const struct strmap *m, const char *key, size_t len)
{
	struct slot *s = strmap_find(m, sip_hash(g_strmap_seed, key, len), key, len);
	const struct strkey *k;

	if (s == NULL)
		return NULL;
	k = s->p;
	return k->value;
}

void *
strmap_del(struct strmap *m, const char *key, size_t len)
{
	struct slot *s = strmap_find(m, sip_hash(g_strmap_seed, key, len), key, len);
	struct strkey *k;
	void *value;

	if (s == NULL)
		return NULL;
	k = s->p;
	value = k->value;
	table_remove(&m->t, (size_t)(s - m->t.slots));
	mem_free(k);
	return value;
}

size_t
strmap_count(const struct strmap *m)
{
	return m->t.count;
}

struct strmap_visit {
	bool (*fn)(const char *key, size_t len, void *value, void *arg);
	void *arg;
};

static bool
strmap_visit_slot(struct slot s, const void *arg)
{
	const struct strmap_visit *v = arg;
	const struct strkey *k = s.p;

	return v->fn(k->bytes, k->len, k->value, v->arg);
}

void
strmap_each(struct strmap *m,
    bool (*fn)(const char *key, size_t len, void *value, void *arg), void *arg)
{
	struct strmap_visit v = {.fn = fn, .arg = arg};

	table_each(&m->t, strmap_visit_slot, &v);
}

uint64_t
hash_stable(uint64_t seed, const void *p, size_t n)
{
	const unsigned char *bytes = p;
	uint64_t h = seed;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ULL;
	return h;
}
