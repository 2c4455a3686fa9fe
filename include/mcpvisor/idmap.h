/* SPDX-License-Identifier: MIT */
/*
 * Two hash tables: by 64-bit integer, and by bytes. Values are pointers that
 * the table does not own. Keys of a strmap are copied; its hash is seeded per
 * process because peers choose the keys.
 */
#ifndef MCPVISOR_IDMAP_H
#define MCPVISOR_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap;

struct idmap *idmap_new(void);
void idmap_free(struct idmap *m); /* NULL is allowed */
/* Replaces; value must not be NULL. False when memory is short. */
bool idmap_put(struct idmap *m, uint64_t key, void *value)
    __attribute__((warn_unused_result));
void *idmap_get(const struct idmap *m, uint64_t key); /* NULL: absent */
void *idmap_del(struct idmap *m, uint64_t key);	      /* the value, or NULL */
size_t idmap_count(const struct idmap *m);
/* Visits each entry; fn may delete the visited key and no other. Stops when fn
 * returns false, and may not put. Order is unspecified. */
void idmap_each(
    struct idmap *m, bool (*fn)(uint64_t key, void *value, void *arg), void *arg);

struct strmap;

struct strmap *strmap_new(void);
void strmap_free(struct strmap *m); /* NULL is allowed */
bool strmap_put(struct strmap *m, const char *key, size_t len, void *value)
    __attribute__((warn_unused_result));
void *strmap_get(const struct strmap *m, const char *key, size_t len);
void *strmap_del(struct strmap *m, const char *key, size_t len);
size_t strmap_count(const struct strmap *m);
void strmap_each(struct strmap *m,
    bool (*fn)(const char *key, size_t len, void *value, void *arg), void *arg);

/* FNV-1a, 64 bits, not seeded: for names that must be the same tomorrow. */
uint64_t hash_stable(uint64_t seed, const void *p, size_t n);
#define HASH_STABLE_SEED 0xcbf29ce484222325ULL

#endif
