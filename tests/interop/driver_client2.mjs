// SPDX-License-Identifier: MIT
// @modelcontextprotocol/client 2.x, which speaks either era.
// Usage: node driver_client2.mjs CONFIG.json legacy|auto|modern

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ANSWERS, CAPABILITIES, config, run, terminate } from './scenario.mjs';

const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

const conf = config();
const mode = process.argv[3];
const era = mode === 'legacy' ? 'legacy' : 'modern';
const client = new Client({ name: 'interop-client2', version: '1.0.0' }, {
	versionNegotiation: { mode: MODES[mode] },
	...(conf.servers && { capabilities: CAPABILITIES }),
});
for (const [method, answer] of Object.entries(conf.servers ? ANSWERS : {}))
	client.setRequestHandler(method, (r) => answer(r.params));
const transport = conf.url ?
	new StreamableHTTPClientTransport(new URL(conf.url)) :
	new StdioClientTransport({
		command: conf.command, args: conf.args, env: conf.env, stderr: 'inherit',
	});
// A list that was served from the client's own cache would prove nothing.
const FRESH = { cacheMode: 'bypass' };
// It holds results against the schemas of tools that are in it.
const TOOLS = conf.calls ? {} : FRESH;

async function subscribe({ uris = [] }) {
	for (const uri of uris)
		await client.subscribeResource({ uri });
	return async () => {
		for (const uri of uris)
			await client.unsubscribeResource({ uri });
	};
}

async function listen({ uris, tools }) {
	const subscription = await client.listen({
		...(uris && { resourceSubscriptions: uris }),
		...(tools && { toolsListChanged: true }),
	});
	return () => subscription.close();
}

await run({
	era,
	label: `client2-${mode}`,
	connect: () => client.connect(transport),
	close: () => client.close(),
	terminate: conf.url && (() => terminate(transport, conf.url)),
	info: () => ({
		server: client.getServerVersion(),
		capabilities: client.getServerCapabilities(),
		instructions: client.getInstructions(),
		era: client.getProtocolEra(),
		revision: client.getNegotiatedProtocolVersion(),
		discovered: client.getDiscoverResult(),
	}),
	lists: {
		tools: () => client.listTools(undefined, TOOLS),
		prompts: () => client.listPrompts(undefined, FRESH),
		resources: () => client.listResources(undefined, FRESH),
		templates: () => client.listResourceTemplates(undefined, FRESH),
	},
	callTool: (params, options) => client.callTool(params, options),
	readResource: (params, options) => client.readResource(params, { ...options, ...FRESH }),
	getPrompt: (params, options) => client.getPrompt(params, options),
	complete: (params, options) => client.complete(params, options),
	ping: () => client.ping(),
	setLevel: (level) => client.setLoggingLevel(level),
	on: (method, fn) => client.setNotificationHandler(method, fn),
	watch: era === 'legacy' ? subscribe : listen,
}, conf);
