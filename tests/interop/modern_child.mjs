// SPDX-License-Identifier: MIT
// A server of the modern revision alone, on the official SDK, with one of
// everything that the interop tests want to see pass through.
//
// INTEROP_TRACE names a file that gets a line when a slow call starts and when
// it is really given up: what a client cannot see from outside.

import { appendFileSync } from 'node:fs';
import {
	McpServer, ResourceNotFoundError, ResourceTemplate, completable,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const COUNTER_URI = 'interop://counter';
// Long enough for a client to read one step at a time.
const STEP_MS = 30;
const LANGUAGES = ['c', 'clojure', 'cobol', 'python', 'rust'];

function trace(line) {
	if (process.env.INTEROP_TRACE)
		appendFileSync(process.env.INTEROP_TRACE, line + '\n');
}

function text(t) {
	return { content: [{ type: 'text', text: t }] };
}

async function progress(ctx, done, total) {
	const progressToken = ctx.mcpReq._meta?.progressToken;
	if (progressToken === undefined)
		return;
	await ctx.mcpReq.notify({
		method: 'notifications/progress',
		params: { progressToken, progress: done, total, message: `step ${done}` },
	});
}

function sleep(ms, signal) {
	return new Promise((resolve) => {
		if (signal.aborted)
			return resolve(false);
		const timer = setTimeout(() => resolve(true), ms);
		signal.addEventListener('abort', () => {
			clearTimeout(timer);
			resolve(false);
		});
	});
}

function addTools(server) {
	let counter = 0;

	server.registerTool('greet', {
		title: 'Greet',
		description: 'Says hello',
		inputSchema: z.object({ name: z.string() }),
		outputSchema: z.object({ greeting: z.string(), letters: z.number() }),
		annotations: { readOnlyHint: true, idempotentHint: true },
		_meta: { 'example.org/shelf': { depth: 1.5 } },
	}, async ({ name }) => ({
		content: [{
			type: 'text',
			text: `Hello, ${name}`,
			annotations: { priority: 0.1, audience: ['user'] },
		}],
		structuredContent: { greeting: `Hello, ${name}`, letters: name.length },
		_meta: { 'example.org/mood': { value: 0.1, words: ['glad'] } },
	}));

	server.registerTool('count', {
		description: 'Counts, with progress',
		inputSchema: z.object({ to: z.number().int() }),
	}, async ({ to }, ctx) => {
		for (let i = 1; i <= to; i++) {
			await progress(ctx, i, to);
			await sleep(STEP_MS, ctx.mcpReq.signal);
		}
		return text(`counted to ${to}`);
	});

	server.registerTool('slow', {
		description: 'Takes a minute unless it is given up',
		inputSchema: z.object({ tag: z.string() }),
	}, async ({ tag }, ctx) => {
		trace(`started ${tag}`);
		await progress(ctx, 1, 2);
		const whole = await sleep(60000, ctx.mcpReq.signal);
		trace(`${whole ? 'finished' : 'cancelled'} ${tag}`);
		return text(tag);
	});

	server.registerTool('fail', {
		description: 'Fails, politely',
		inputSchema: z.object({ why: z.string() }),
	}, async ({ why }) => ({
		...text(`failed: ${why}`),
		isError: true,
		_meta: { 'example.org/retry': false },
	}));

	server.registerTool('bump', {
		description: 'Changes the counter resource',
		inputSchema: z.object({}),
	}, async () => {
		counter += 1;
		await server.server.sendResourceUpdated({ uri: COUNTER_URI });
		return text(String(counter));
	});

	server.registerTool('grow', {
		description: 'Adds one more tool to the list',
		inputSchema: z.object({}),
	}, async () => {
		server.registerTool('grown', {
			description: 'Came later',
			inputSchema: z.object({}),
		}, async () => text('grown'));
		return text('one more');
	});

	server.registerResource('counter', COUNTER_URI, {
		title: 'Counter',
		mimeType: 'text/plain',
	}, async (uri) => ({
		contents: [{ uri: uri.href, mimeType: 'text/plain', text: String(counter) }],
	}));
}

function createServer() {
	const server = new McpServer({ name: 'interop-modern', version: '1.0.0' }, {
		capabilities: {
			tools: { listChanged: true },
			resources: { subscribe: true, listChanged: true },
			prompts: { listChanged: true },
		},
		instructions: 'The modern child counts and greets.',
	});

	addTools(server);
	server.registerResource('item',
		new ResourceTemplate('interop://item/{id}', {
			list: undefined,
			complete: { id: (value) => ['11', '12', '21'].filter((i) => i.startsWith(value)) },
		}),
		{ mimeType: 'application/json' },
		async (uri, { id }) => {
			if (id === 'gone')
				throw new ResourceNotFoundError(uri.href);
			return {
				contents: [{
					uri: uri.href,
					mimeType: 'application/json',
					text: JSON.stringify({ id }),
				}],
			};
		});
	server.registerPrompt('plan', {
		title: 'Plan',
		argsSchema: z.object({
			language: completable(z.string(),
				(value) => LANGUAGES.filter((l) => l.startsWith(value))),
		}),
	}, ({ language }) => ({
		description: 'A plan',
		messages: [{
			role: 'user',
			content: { type: 'text', text: `Plan a program in ${language}` },
		}],
	}));
	return server;
}

serveStdio(createServer, { legacy: 'reject', onerror: (e) => console.error(String(e)) });
