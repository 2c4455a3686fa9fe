/* SPDX-License-Identifier: MIT */
/*
 * libcurl, loaded when the first transfer wants it, because it draws in two dozen
 * libraries that a process without remote upstreams need not carry.
 *
 * Owns: the library, until the process ends: some of what it draws in cannot be unloaded.
 * Driven by: curl_loop.
 * Invariants: either all functions are there, or none is called.
 */
#include "curl_loop_priv.h"

#include <dlfcn.h>
#include <string.h>

#define CURL_LIB_FILE "libcurl.so.4"
/* Headers by name (7.84), names of protocols (7.85), one store of certificates for all
 * connections (7.87). */
#define CURL_LIB_LEAST	    0x075800u
#define CURL_LIB_LEAST_TEXT "7.88"

static struct curl_lib g_curl_lib;
static bool g_curl_lib_loaded;

static const struct {
	const char *name;
	size_t at;
} functions[] = {
#define X(name) {"curl_" #name, offsetof(struct curl_lib, name)},
    CURL_LIB_FUNCTIONS(X)
#undef X
};

static bool
curl_lib_find(void *handle, struct mv_errtext *t)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *f = dlsym(handle, functions[i].name);

		if (!f) {
			mv_errtext_set(
			    t, CURL_LIB_FILE " has no function %s", functions[i].name);
			return false;
		}
		memcpy((char *)&g_curl_lib + functions[i].at, &f, sizeof(f));
	}
	return true;
}

static bool
curl_lib_is_fit(struct mv_errtext *t)
{
	const curl_version_info_data *v = g_curl_lib.version_info(CURLVERSION_NOW);

	if (v->version_num < CURL_LIB_LEAST) {
		mv_errtext_set(t,
		    CURL_LIB_FILE " is version %s, and " CURL_LIB_LEAST_TEXT " is needed",
		    v->version);
		return false;
	}
	if (g_curl_lib.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		mv_errtext_set(t, CURL_LIB_FILE " cannot be started");
		return false;
	}
	return true;
}

const struct curl_lib *
curl_lib_get(struct mv_errtext *t)
{
	void *handle;

	if (g_curl_lib_loaded)
		return &g_curl_lib;
	handle = dlopen(CURL_LIB_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *why = dlerror();

		mv_errtext_set(t, "libcurl cannot be loaded: %s",
		    why ? why : CURL_LIB_FILE " is missing");
		return NULL;
	}
	g_curl_lib_loaded = curl_lib_find(handle, t) && curl_lib_is_fit(t);
	if (g_curl_lib_loaded)
		return &g_curl_lib;
	dlclose(handle);
	return NULL;
}
