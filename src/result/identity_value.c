/* SPDX-License-Identifier: MIT */
/*
 * Whether a JSON value says "nobody".
 *
 * Owns: nothing. Driven by: identity.
 * Invariants: bounded by depth and by the quotes that JSON in strings costs; keys that
 * decide are one table; what is not understood is somebody, unless it is empty.
 */
#include "mcpvisor/identity.h"

#include "identity_priv.h"
#include "payload_priv.h"

#include <string.h>

/* By what a member is looked at: the first of these that an object has decides. */
enum key_class {
	KEY_HIDDEN, /* begins with __ */
	KEY_SIGNED_IN,
	KEY_DATA,
	KEY_ERRORS,
	KEY_AROUND, /* what else stands in a GraphQL answer */
	KEY_WHO,
	KEY_OTHER
};
#define BIT(class) (1u << (class))
#define ENVELOPE   (BIT(KEY_DATA) | BIT(KEY_ERRORS) | BIT(KEY_AROUND))

/* X(CLASS, key) */
#define KEYS(X)                                                                          \
	X(SIGNED_IN, "authenticated")                                                    \
	X(SIGNED_IN, "isAuthenticated")                                                  \
	X(SIGNED_IN, "is_authenticated")                                                 \
	X(SIGNED_IN, "loggedIn")                                                         \
	X(SIGNED_IN, "logged_in")                                                        \
	X(DATA, "data")                                                                  \
	X(ERRORS, "errors")                                                              \
	X(AROUND, "extensions")                                                          \
	X(AROUND, "_warning")                                                            \
	X(WHO, "viewer")                                                                 \
	X(WHO, "me")                                                                     \
	X(WHO, "user")                                                                   \
	X(WHO, "currentUser")                                                            \
	X(WHO, "current_user")                                                           \
	X(WHO, "getMe")                                                                  \
	X(WHO, "get_me")                                                                 \
	X(WHO, "whoami")                                                                 \
	X(WHO, "self")                                                                   \
	X(WHO, "myself")                                                                 \
	X(WHO, "account")                                                                \
	X(WHO, "identity")                                                               \
	X(WHO, "profile")                                                                \
	X(WHO, "authenticatedUser")                                                      \
	X(WHO, "authenticated_user")

static enum key_class
key_class_of(struct jtext key)
{
	static const struct {
		enum key_class class;
		const char *key;
	} keys[] = {
#define X(class, key) {KEY_##class, key},
	    KEYS(X)
#undef X
	};

	if (key.n >= 4 && memcmp(key.p + 1, "__", 2) == 0)
		return KEY_HIDDEN;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (json_string_is(key, keys[i].key))
			return keys[i].class;
	}
	return KEY_OTHER;
}

static bool
is_false(struct jtext t)
{
	return jtext_is_equal(t, (struct jtext){"false", 5});
}

/* Which classes of members say who it is; 0: it says itself that it is nobody. */
static unsigned
classes_that_count(struct jtext object)
{
	struct jtext key, value;
	struct json_iter it;
	unsigned has = 0;

	json_iter_init(&it, object);
	while (json_next_member(&it, &key, &value)) {
		enum key_class class = key_class_of(key);

		if (class == KEY_SIGNED_IN && is_false(value))
			return 0;
		has |= BIT(class);
	}
	/* Errors alone are nobody, though they are something. */
	if ((has & (BIT(KEY_DATA) | BIT(KEY_ERRORS))) != 0 &&
	    (has & ~(ENVELOPE | BIT(KEY_HIDDEN))) == 0)
		return BIT(KEY_DATA);
	if ((has & BIT(KEY_WHO)) != 0)
		return BIT(KEY_WHO);
	return ~BIT(KEY_HIDDEN);
}

static bool null_like(struct jtext value, unsigned depth, bool *is_too_deep);

static bool
object_is_null_like(struct jtext object, unsigned depth, bool *is_too_deep)
{
	unsigned counts = classes_that_count(object);
	struct jtext key, value;
	struct json_iter it;

	json_iter_init(&it, object);
	while (counts != 0 && json_next_member(&it, &key, &value)) {
		if ((counts & BIT(key_class_of(key))) != 0 &&
		    !null_like(value, depth, is_too_deep))
			return false;
	}
	return true;
}

static bool
array_is_null_like(struct jtext array, unsigned depth, bool *is_too_deep)
{
	struct json_iter it;
	struct jtext value;

	json_iter_init(&it, array);
	while (json_next_element(&it, &value)) {
		if (!null_like(value, depth, is_too_deep))
			return false;
	}
	return true;
}

static bool
string_is_null_like(struct jtext string, unsigned depth, bool *is_too_deep)
{
	struct jtext text, value;
	struct buf decoded;
	bool is = false;

	buf_init(&decoded, string.n);
	text = payload_decode(string, &decoded);
	value = payload_json(text);
	if (text.p != NULL && payload_trim(text).n == 0)
		is = true;
	else if (value.n > 0)
		is = null_like(value, depth, is_too_deep);
	buf_fini(&decoded);
	return is;
}

static bool
null_like(struct jtext value, unsigned depth, bool *is_too_deep)
{
	if (depth == 0) {
		*is_too_deep = true;
		return false;
	}
	switch (jtext_type(value)) {
	case '{':
		return object_is_null_like(value, depth - 1, is_too_deep);
	case '[':
		return array_is_null_like(value, depth - 1, is_too_deep);
	case '"':
		return string_is_null_like(value, depth - 1, is_too_deep);
	case 'n':
	case 'f':
		return true;
	default:
		return false;
	}
}

bool
identity_value_is_null_like(struct jtext value, bool *is_too_deep)
{
	*is_too_deep = false;
	return null_like(value, IDENTITY_DEPTH, is_too_deep);
}

bool
identity_is_null_like(struct jtext value)
{
	bool is_too_deep;

	return identity_value_is_null_like(value, &is_too_deep);
}
