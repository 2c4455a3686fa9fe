/* SPDX-License-Identifier: MIT */
/* The form that each sentence of an error of ours has: the one place that says so. */
#ifndef MCPVISOR_WORDING_FORM_H
#define MCPVISOR_WORDING_FORM_H

#include "mcpvisor/json.h"

#include <check.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The longest: a detail of 256 bytes and its dots, a name of 64, and our own words. */
#define FORM_BYTES 600

/* What tells whether, or how, to try again. Without one only what the protocol words. */
static inline bool
form_says_retry(const char *s)
{
	static const char *const ends[] = {"; a retry may help",
	    "; a retry will not help", ". Retrying unchanged will fail.",
	    "so check before a retry", "and a retry will not help",
	    "check what it has done before a retry", ". Add it and call again.",
	    ". A retry may succeed.", "use another one", "send initialize first",
	    "send the request again without it", "initialize anew", "open a new stream",
	    "send one of data.supported", "declare it and send the request again",
	    "data.requiredCapabilities to be asked", "Call the tool again without it."};
	size_t n = strlen(s);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t len = strlen(ends[i]);

		if (n >= len && strcmp(s + n - len, ends[i]) == 0)
			return true;
	}
	return false;
}

static inline bool
form_has_path(const char *s)
{
	static const char *const roots[] = {
	    "/home/", "/usr/", "/etc/", "/srv/", "/var/", "/tmp/", "/opt/", "/root/"};

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (strstr(s, roots[i]) != NULL)
			return true;
	return false;
}

/* s: decoded. is_protocols: its words are the protocol's, which say nothing of a retry.
 */
static inline void
form_assert_sentence(const char *s, bool is_protocols)
{
	ck_assert_msg(s[0] != '\0' && strlen(s) <= FORM_BYTES, "length: %s", s);
	for (const char *p = s; *p != '\0'; p++)
		ck_assert_msg((unsigned char)*p >= 0x20 && *p != 0x7f, "control: %s", s);
	ck_assert_msg(!form_has_path(s), "a path: %s", s);
	ck_assert_msg(strstr(s, "(null)") == NULL && strchr(s, '%') == NULL, "%s", s);
	ck_assert_msg(is_protocols || form_says_retry(s), "no word of a retry: %s", s);
}

/* An error object, or a result whose one text is the sentence. */
static inline void
form_assert_object(struct jtext o, bool is_protocols)
{
	struct jtext text = json_member(o, "message"), content;
	struct json_iter it;
	struct buf b;
	int64_t code = 0;

	if (text.n == 0) {
		content = json_member(o, "content");
		json_iter_init(&it, content);
		ck_assert(json_next_element(&it, &content));
		text = json_member(content, "text");
	} else {
		ck_assert(json_int(json_member(o, "code"), &code));
		/* Those of JSON-RPC and of MCP; the range between is no one's to use, but
		 * for the one that MCP gave out of it before 2026-07-28. */
		ck_assert_msg(code == -32700 || (code <= -32600 && code >= -32603) ||
				  (code <= -32020 && code >= -32099) || code == -32002,
		    "code %lld", (long long)code);
	}
	buf_init(&b, 1u << 20);
	ck_assert(json_string_decode(text, &b));
	form_assert_sentence(buf_cstr(&b), is_protocols);
	buf_fini(&b);
}

#endif
