// SPDX-License-Identifier: MIT
// Servers on the official SDKs of both generations, over every transport that these have,
// each at a path of its own; or one of them on stdio.
// Usage: node remote_servers.mjs PORT | stdio1 | stdio2
//
// POST /forget loses all sessions, as a restart does; GET /count is how many were begun.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import * as v1 from '@modelcontextprotocol/sdk/server/mcp.js';
import { completable as completable1 } from '@modelcontextprotocol/sdk/server/completable.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { offer } from './remote_tools.mjs';

const FORM = {
	type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'],
};
const CAPABILITIES = {
	tools: { listChanged: true }, resources: { subscribe: true, listChanged: true },
	prompts: {}, logging: {},
};

function sampling(t) {
	return { messages: [{ role: 'user', content: { type: 'text', text: t } }], maxTokens: 10 };
}

// ---- the first generation ----

const ask1 = {
	form: async (ctx, t) => (await ctx.sendRequest({
		method: 'elicitation/create', params: { message: t, requestedSchema: FORM },
	}, types.ElicitResultSchema)).content.answer,
	url: async (ctx, t) => (await ctx.sendRequest({
		method: 'elicitation/create', params: {
			mode: 'url', message: t, url: 'https://example.org/', elicitationId: randomUUID(),
		},
	}, types.ElicitResultSchema)).action,
	model: async (ctx, t) => (await ctx.sendRequest({
		method: 'sampling/createMessage', params: sampling(t),
	}, types.CreateMessageResultSchema)).content.text,
	roots: async (ctx) => (await ctx.sendRequest(
		{ method: 'roots/list' }, types.ListRootsResultSchema)).roots[0].uri,
};

function server1(name, state = {}) {
	const server = new v1.McpServer({ name, version: '1.0.0' }, { capabilities: CAPABILITIES });

	server.server.setRequestHandler(types.SubscribeRequestSchema, async () => ({}));
	server.server.setRequestHandler(types.UnsubscribeRequestSchema, async () => ({}));
	offer(server, {
		name, z, state, ask: ask1, completable: completable1,
		shape: (args) => args,
		of: (ctx) => ({
			meta: ctx._meta ?? {}, notify: ctx.sendNotification, signal: ctx.signal,
		}),
		notes: {
			updated: (uri) => server.server.sendResourceUpdated({ uri }),
			grown: (add) => add(),
		},
	});
	return server;
}

const sessions = new Map();
let begun = 0;

function sessionful(name, options) {
	return async (req, res) => {
		const id = req.headers['mcp-session-id'];
		let transport = sessions.get(id);
		if (id && !transport) {
			res.writeHead(404).end();
			return;
		}
		if (!transport) {
			transport = new StreamableHTTPServerTransport({
				sessionIdGenerator: randomUUID,
				onsessioninitialized: (sid) => {
					sessions.set(sid, transport);
					begun++;
				},
				onsessionclosed: (sid) => sessions.delete(sid),
				...options,
			});
			await server1(name).connect(transport);
		}
		await transport.handleRequest(req, res);
	};
}

async function stateless(req, res) {
	const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
	const server = server1('v1-stateless');

	res.on('close', () => server.close());
	await server.connect(transport);
	await transport.handleRequest(req, res);
}

async function openSse(req, res) {
	if (req.method !== 'GET') {
		res.writeHead(405).end();
		return;
	}
	const transport = new SSEServerTransport('/v1/messages', res);

	sessions.set(transport.sessionId, transport);
	begun++;
	await server1('v1-sse').connect(transport);
}

async function postSse(req, res, url) {
	const transport = sessions.get(url.searchParams.get('sessionId'));

	if (transport)
		await transport.handlePostMessage(req, res);
	else
		res.writeHead(404).end();
}

// ---- the second ----

// A question that is part of a result; the answer comes with the next try.
function ask2(kind, question, read) {
	return (ctx, t) => {
		const answer = ctx.mcpReq.inputResponses?.[kind];
		return answer ? read(answer) : v2.inputRequired({ inputRequests: { [kind]: question(t) } });
	};
}

const asks2 = {
	form: ask2('form', (t) => v2.inputRequired.elicit({ message: t, requestedSchema: FORM }),
		(a) => a.content.answer),
	url: ask2('url', (t) => v2.inputRequired.elicitUrl(
		{ message: t, url: 'https://example.org/' }), (a) => a.action),
	model: ask2('model', (t) => v2.inputRequired.createMessage(sampling(t)),
		(a) => a.content.text),
	roots: ask2('roots', () => v2.inputRequired.listRoots(), (a) => a.roots[0].uri),
};

function server2(name, state, notes) {
	const server = new v2.McpServer({ name, version: '1.0.0' }, { capabilities: CAPABILITIES });

	server.server.setRequestHandler('resources/subscribe', async () => ({}));
	server.server.setRequestHandler('resources/unsubscribe', async () => ({}));
	offer(server, {
		name, z, state, ask: asks2, completable: v2.completable,
		shape: (args) => z.object(args),
		of: (ctx) => ({
			meta: ctx.mcpReq._meta ?? {}, notify: ctx.mcpReq.notify, signal: ctx.mcpReq.signal,
		}),
		notes: notes ?? {
			updated: (uri) => server.server.sendResourceUpdated({ uri }),
			grown: (add) => add(),
		},
	});
	return server;
}

function handler2(name, options) {
	const state = {};
	const handler = v2.createMcpHandler(() => server2(name, state, {
		updated: (uri) => handler.notify.resourceUpdated(uri),
		grown: () => handler.notify.toolsChanged(),
	}), options);
	return getRequestListener((request) => handler.fetch(request));
}

// Sessions of the second generation, for legacy clients alone.
async function sessionful2(request) {
	const id = request.headers.get('mcp-session-id');
	let transport = sessions.get(id);

	if (id && !transport)
		return new Response(null, { status: 404 });
	if (!transport) {
		transport = new v2.WebStandardStreamableHTTPServerTransport({
			sessionIdGenerator: randomUUID,
			onsessioninitialized: (sid) => {
				sessions.set(sid, transport);
				begun++;
			},
			onsessionclosed: (sid) => sessions.delete(sid),
		});
		await server2('v2-legacy', {}).connect(transport);
	}
	return transport.handleRequest(request);
}

// ---- all of them ----

const PATHS = {
	'/v1/stateful': sessionful('v1-stateful'),
	'/v1/json': sessionful('v1-json', { enableJsonResponse: true }),
	'/v1/stateless': stateless,
	'/v1/sse': openSse,
	'/v1/messages': postSse,
	'/v2/modern': handler2('v2-modern', { legacy: 'reject' }),
	'/v2/streams': handler2('v2-streams', { legacy: 'reject', responseMode: 'sse' }),
	'/v2/both': handler2('v2-both'),
	'/v2/legacy': getRequestListener(sessionful2),
	'/forget': (req, res) => {
		for (const transport of sessions.values())
			transport.close();
		sessions.clear();
		res.writeHead(204).end();
	},
	'/count': (req, res) => res.end(String(begun)),
};

async function serve(req, res) {
	const url = new URL(req.url, 'http://localhost');
	const run = PATHS[url.pathname];

	if (!run)
		return res.writeHead(404).end();
	try {
		await run(req, res, url);
	} catch (e) {
		console.error(e);
		if (!res.headersSent)
			res.writeHead(500).end();
	}
}

if (process.argv[2] === 'stdio1') {
	await server1('v1-stdio').connect(new StdioServerTransport());
} else if (process.argv[2] === 'stdio2') {
	serveStdio(() => server2('v2-stdio', {}), { onerror: (e) => console.error(String(e)) });
} else {
	const http = createServer(serve).listen(Number(process.argv[2]), '127.0.0.1', () =>
		console.log(http.address().port));
}
