/* SPDX-License-Identifier: MIT */
/* How a GraphQL endpoint is fronted: plain data, owned by whoever parsed it. */
#ifndef MCPVISOR_GRAPHQL_CONF_H
#define MCPVISOR_GRAPHQL_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum graphql_mutations { MUTATIONS_NONE, MUTATIONS_EXPLICIT, MUTATIONS_ALL };
enum graphql_execute { EXECUTE_OFF, EXECUTE_QUERIES, EXECUTE_ALL };
enum graphql_names { NAMES_KEEP, NAMES_SNAKE };
extern const char *const graphql_mutations_words[], *const graphql_execute_words[],
							*const graphql_names_words[];

struct graphql_conf {
	char **operations; /* patterns of files (glob), NULL-terminated; NULL: none */
	char *schema;	   /* "introspect", "none", or the path of a file */
	char *cache;   /* file for the last good answer to introspection; NULL: none */
	char *scalars; /* JSON text: NAME to JSON Schema; NULL: none */
	char **fields; /* patterns as Query.user; NULL: no tools are generated */
	enum graphql_mutations mutations;
	enum graphql_execute execute;
	enum graphql_names names;
	uint32_t refresh_ms;   /* 600000; 0: never */
	uint32_t max_tools;    /* 64 */
	uint32_t depth;	       /* 2 */
	uint32_t max_fields;   /* 60 */
	uint32_t timeout_ms;   /* 30000 */
	uint64_t response_max; /* 4 MiB */
	uint32_t inflight;     /* 16: requests at a time */
	bool plain;	       /* structured = false: text alone */
	bool output_schema;
};
void graphql_conf_fini(struct graphql_conf *c);

#endif
