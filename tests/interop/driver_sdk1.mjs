// SPDX-License-Identifier: MIT
// @modelcontextprotocol/sdk 1.x, the legacy client that most programs embed.
// Usage: node driver_sdk1.mjs CONFIG.json

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { ANSWERS, CAPABILITIES, config, pages, run, terminate } from './scenario.mjs';

const NOTICES = {
	'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
	'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
	'notifications/message': types.LoggingMessageNotificationSchema,
};

const QUESTIONS = {
	'sampling/createMessage': types.CreateMessageRequestSchema,
	'elicitation/create': types.ElicitRequestSchema,
	'roots/list': types.ListRootsRequestSchema,
};

const conf = config();
const client = new Client({ name: 'interop-sdk1', version: '1.0.0' },
	conf.servers && { capabilities: CAPABILITIES });
for (const [method, schema] of Object.entries(conf.servers ? QUESTIONS : {}))
	client.setRequestHandler(schema, (r) => ANSWERS[method](r.params));
const transport = conf.sse ? new SSEClientTransport(new URL(conf.url)) :
	conf.url ? new StreamableHTTPClientTransport(new URL(conf.url)) :
		new StdioClientTransport({
			command: conf.command, args: conf.args, env: conf.env, stderr: 'inherit',
		});

await run({
	era: 'legacy',
	label: 'sdk1',
	connect: () => client.connect(transport),
	close: () => client.close(),
	terminate: conf.url && !conf.sse && (() => terminate(transport, conf.url)),
	info: () => ({
		server: client.getServerVersion(),
		capabilities: client.getServerCapabilities(),
		instructions: client.getInstructions(),
	}),
	lists: {
		tools: () => pages((p) => client.listTools(p), 'tools'),
		prompts: () => pages((p) => client.listPrompts(p), 'prompts'),
		resources: () => pages((p) => client.listResources(p), 'resources'),
		templates: () => pages((p) => client.listResourceTemplates(p), 'resourceTemplates'),
	},
	callTool: (params, options) => client.callTool(params, undefined, options),
	readResource: (params, options) => client.readResource(params, options),
	getPrompt: (params, options) => client.getPrompt(params, options),
	complete: (params, options) => client.complete(params, options),
	ping: () => client.ping(),
	setLevel: (level) => client.setLoggingLevel(level),
	on: (method, fn) => client.setNotificationHandler(NOTICES[method], fn),
	watch: async ({ uris = [] }) => {
		for (const uri of uris)
			await client.subscribeResource({ uri });
		return async () => {
			for (const uri of uris)
				await client.unsubscribeResource({ uri });
		};
	},
}, conf);
