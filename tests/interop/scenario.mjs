// SPDX-License-Identifier: MIT
// The list of steps that every SDK client goes through, whatever its API looks
// like. A step prints one JSON line, {"step", "ok", ...what it saw}; the
// assertions are in Python, so that one place says what is right.
//
// An adapter gives: era, connect, close, info, lists (name -> function),
// callTool(params, options), readResource, getPrompt, complete, on(method, fn),
// watch(uri) -> function that ends it; if legacy also ping and setLevel; on HTTP
// also terminate.

import { existsSync, readFileSync } from 'node:fs';

const REQUEST_MS = 30000;
const NOTICE_MS = 10000;
const START_MS = 20000;
const OPTIONS = { timeout: REQUEST_MS };

function emit(line) {
	process.stdout.write(JSON.stringify(line) + '\n');
}

async function waitFor(check, what) {
	const end = Date.now() + NOTICE_MS;
	for (;;) {
		const seen = check();
		if (seen)
			return seen;
		if (Date.now() > end)
			throw new Error(`not seen within ${NOTICE_MS} ms: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
}

function describeError(e) {
	return { code: e?.code, message: String(e?.message), data: e?.data };
}

// Calls that are expected to fail report how they fail.
async function errorOf(promise) {
	try {
		return { result: await promise };
	} catch (e) {
		return { error: describeError(e) };
	}
}

async function abortedCall(client, name, args, started) {
	const controller = new AbortController();
	const seen = [];
	const call = client.callTool({ name, arguments: args }, {
		...OPTIONS,
		signal: controller.signal,
		onprogress: (p) => seen.push(p.progress),
	});
	call.catch(() => {});
	await waitFor(() => seen.length > 0 && started(), `progress of ${name}`);
	controller.abort('enough');
	return errorOf(call);
}

function traceHas(config, line) {
	return existsSync(config.trace) &&
		readFileSync(config.trace, 'utf8').split('\n').includes(line);
}

function steps(client, config) {
	const legacy = client.era === 'legacy';
	const notices = [];
	for (const method of [
		'notifications/resources/updated',
		'notifications/tools/list_changed',
		...(legacy ? ['notifications/message'] : []),
	])
		client.on(method, (n) => notices.push({ method, params: n.params }));
	const noticed = (method, match = () => true) =>
		waitFor(() => notices.find((n) => n.method === method && match(n.params)),
			method);
	const changes = () => notices.filter(
		(n) => n.method === 'notifications/tools/list_changed').length;
	const call = (name, args, options = {}) =>
		client.callTool({ name, arguments: args }, { ...OPTIONS, ...options });
	const progressOf = async (name, args) => {
		const seen = [];
		const result = await call(name, args, { onprogress: (p) => seen.push(p) });
		return { progress: [...seen], result };
	};

	return {
		info: () => client.info(),
		tools: () => client.lists.tools(),
		prompts: () => client.lists.prompts(),
		resources: () => client.lists.resources(),
		templates: () => client.lists.templates(),
		call_everything: () => call('everything__get-structured-content', { location: 'Chicago' }),
		call_filesystem: () => call('filesystem__read_text_file', { path: config.file }),
		call_memory: () => call('memory__create_entities', {
			entities: [{ name: client.label, entityType: 'client', observations: ['ran'] }],
		}),
		call_thinking: () => call('sequential-thinking__sequentialthinking', {
			thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1,
		}),
		call_modern: () => call('modern__greet', { name: 'Bo' }),
		is_error_legacy: () => call('filesystem__read_text_file', { path: '/etc/passwd' }),
		is_error_modern: () => call('modern__fail', { why: 'no luck' }),
		unknown_tool: () => errorOf(call('everything__no-such-tool', {})),
		unknown_upstream: () => errorOf(call('nobody__echo', {})),
		read_everything: () => client.readResource(
			{ uri: 'demo://resource/static/document/features.md' }, OPTIONS),
		read_template: () => client.readResource(
			{ uri: 'demo://resource/dynamic/text/7' }, OPTIONS),
		read_memory: () => client.readResource({ uri: 'memory://knowledge-graph' }, OPTIONS),
		read_modern: () => client.readResource({ uri: 'interop://counter' }, OPTIONS),
		read_modern_template: () => client.readResource({ uri: 'interop://item/3' }, OPTIONS),
		read_unknown: () => errorOf(client.readResource({ uri: 'nothing://here' }, OPTIONS)),
		prompt_everything: () => client.getPrompt(
			{ name: 'everything__args-prompt', arguments: { city: 'Bonn' } }, OPTIONS),
		prompt_modern: () => client.getPrompt(
			{ name: 'modern__plan', arguments: { language: 'c' } }, OPTIONS),
		prompt_unknown: () => errorOf(client.getPrompt({ name: 'everything__none' }, OPTIONS)),
		complete_prompt: () => client.complete({
			ref: { type: 'ref/prompt', name: 'everything__completable-prompt' },
			argument: { name: 'name', value: 'A' },
			context: { arguments: { department: 'Engineering' } },
		}, OPTIONS),
		complete_template: () => client.complete({
			ref: { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' },
			argument: { name: 'resourceId', value: '12' },
		}, OPTIONS),
		complete_modern: () => client.complete({
			ref: { type: 'ref/prompt', name: 'modern__plan' },
			argument: { name: 'language', value: 'c' },
		}, OPTIONS),
		complete_modern_template: () => client.complete({
			ref: { type: 'ref/resource', uri: 'interop://item/{id}' },
			argument: { name: 'id', value: '1' },
		}, OPTIONS),
		progress_everything: () => progressOf(
			'everything__trigger-long-running-operation', { duration: 0.4, steps: 4 }),
		progress_modern: () => progressOf('modern__count', { to: 5 }),
		progress_both: async () => ({
			calls: await Promise.all([
				progressOf('everything__trigger-long-running-operation',
					{ duration: 0.2, steps: 2 }),
				progressOf('modern__count', { to: 3 }),
			]),
		}),
		cancel_modern: async () => {
			const tag = `tag-${client.label}`;
			const outcome = await abortedCall(client, 'modern__slow', { tag },
				() => traceHas(config, `started ${tag}`));
			await waitFor(() => traceHas(config, `cancelled ${tag}`), 'the cancellation');
			return { ...outcome, after: await call('modern__greet', { name: 'again' }) };
		},
		cancel_everything: async () => ({
			...await abortedCall(client, 'everything__trigger-long-running-operation',
				{ duration: 20, steps: 100 }, () => true),
			after: await call('everything__echo', { message: 'again' }),
		}),
		watch_everything: async () => {
			const uri = 'demo://resource/dynamic/text/1';
			const end = await client.watch({ uris: [uri] });
			await call('everything__toggle-subscriber-updates', {});
			const seen = await noticed('notifications/resources/updated',
				(p) => p.uri === uri);
			await call('everything__toggle-subscriber-updates', {});
			await end();
			return { seen };
		},
		watch_modern: async () => {
			const uri = 'interop://counter';
			const end = await client.watch({ uris: [uri] });
			const bumped = await call('modern__bump', {});
			const seen = await noticed('notifications/resources/updated',
				(p) => p.uri === uri);
			await end();
			return { seen, bumped };
		},
		list_changed: async () => {
			const end = await client.watch({ tools: true });
			const before = changes();
			let listed;
			let noticed = before;
			await call('modern__grow', {});
			// a notice about an earlier change may still come first
			do {
				await waitFor(() => changes() > noticed, 'list_changed');
				noticed = changes();
				listed = await client.lists.tools();
			} while (!listed.tools.some((t) => t.name === 'modern__grown'));
			await end();
			return {
				...listed,
				noticed: noticed - before,
				called: await call('modern__grown', {}),
			};
		},
		...(legacy && {
			ping: () => client.ping(),
			log: async () => {
				await client.setLevel('debug');
				await call('everything__toggle-simulated-logging', {});
				return { seen: await noticed('notifications/message',
					(p) => /level.message/.test(p.data)) };
			},
		}),
		...(client.terminate && { terminate: () => client.terminate() }),
	};
}

// What one of the servers of remote_tools.mjs is asked for, in order.
function stepsOf(client, server, notices) {
	const uri = `interop-${server}://counter`;
	const call = (tool, args, options = {}) => client.callTool(
		{ name: `${server}__${tool}`, arguments: args }, { ...OPTIONS, ...options });
	const seen = (method, match) => waitFor(
		() => notices.find((n) => n.method === method && match(n.params ?? {})), method);
	const ask = (kind) => () => call(`ask_${kind}`, { text: `${client.label} ${server}` });

	return {
		greet: () => call('greet', { name: client.label }),
		fail: () => call('fail', { why: 'no luck' }),
		count: async () => {
			const progress = [];
			const result = await call('count', { to: 6 },
				{ onprogress: (p) => progress.push(p) });
			return { progress, result };
		},
		prompt: () => client.getPrompt(
			{ name: `${server}__plan`, arguments: { language: 'c' } }, OPTIONS),
		complete: () => client.complete({
			ref: { type: 'ref/prompt', name: `${server}__plan` },
			argument: { name: 'language', value: 'c' },
		}, OPTIONS),
		read: () => client.readResource({ uri }, OPTIONS),
		chat: async () => {
			const data = `${client.label} ${server}`;
			await client.setLevel('debug');
			await call('chat', { text: data });
			return { seen: await seen('notifications/message', (p) => p.data === data) };
		},
		ask_form: ask('form'),
		ask_url: ask('url'),
		ask_model: ask('model'),
		ask_roots: ask('roots'),
		watch: async () => {
			const end = await client.watch({ uris: [uri] });
			const bumped = await call('bump', {});
			const updated = await seen('notifications/resources/updated',
				(p) => p.uri === uri);
			await end();
			return { updated, bumped };
		},
		grow: async () => {
			const end = await client.watch({ tools: true });
			const name = (await call('grow', {})).content[0].text;
			await seen('notifications/tools/list_changed', () => true);
			await isListed(client, `${server}__${name}`);
			await end();
			return call(name, {});
		},
		slow: async () => {
			const outcome = await abortedCall(client, `${server}__slow`, { tag: 'x' },
				() => true);
			let given;
			for (const till = Date.now() + NOTICE_MS; Date.now() < till;) {
				given = (await call('given_up', {})).content[0].text;
				if (given !== '0')
					break;
			}
			return { ...outcome, given };
		},
		again: () => call('greet', { name: 'again' }),
	};
}

async function isListed(client, name, list = 'tools', member = 'name') {
	for (const till = Date.now() + START_MS; Date.now() < till;) {
		if ((await client.lists[list]())[list].some((item) => item[member] === name))
			return;
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
}

// All servers at once: no answer may reach another's call.
async function runServers(client, config) {
	const notices = [];

	for (const method of [
		'notifications/resources/updated',
		'notifications/tools/list_changed',
		...(client.era === 'legacy' ? ['notifications/message'] : []),
	])
		client.on(method, (n) => notices.push({ method, params: n.params }));
	await Promise.all(Object.entries(config.servers).map(async ([server, wanted]) => {
		const all = stepsOf(client, server, notices);
		await isListed(client, `${server}__greet`);
		await isListed(client, `interop-${server}://counter`, 'resources', 'uri');
		for (const step of wanted)
			await runStep(`${server}.${step}`, all[step]);
	}));
}

// Tools without arguments, by a client that knows what they promise.
async function runCalls(client, config) {
	await runStep('tools', client.lists.tools);
	for (const name of config.calls)
		await runStep(name, () => client.callTool({ name, arguments: {} }, OPTIONS));
}

async function runStep(step, body) {
	const begin = Date.now();
	try {
		emit({ step, ok: true, ...await body(), ms: Date.now() - begin });
	} catch (e) {
		emit({ step, ok: false, error: describeError(e), stack: e?.stack });
	}
}

// Runs everything, in order; a step that fails never stops the next one.
export async function run(client, config) {
	const begin = Date.now();
	try {
		await client.connect();
	} catch (e) {
		emit({ step: 'connect', ok: false, error: describeError(e) });
		process.exit(1);
	}
	emit({ step: 'connect', ok: true, ms: Date.now() - begin });
	if (config.servers)
		await runServers(client, config);
	else if (config.calls)
		await runCalls(client, config);
	else
		for (const [step, body] of Object.entries(steps(client, config)))
			await runStep(step, body);
	const closing = Date.now();
	await client.close();
	emit({ step: 'close', ok: true, ms: Date.now() - closing });
}

// Every page of a list, for APIs that hand out single pages.
export async function pages(fetchPage, member) {
	const items = [];
	let cursor;
	let count = 0;
	do {
		const page = await fetchPage(cursor === undefined ? undefined : { cursor });
		items.push(...page[member]);
		cursor = page.nextCursor;
		count += 1;
	} while (cursor !== undefined && count < 100);
	return { [member]: items, pages: count };
}

// Ends the session, if there is one, and tells how its id is answered after that.
export async function terminate(transport, url) {
	const session = transport.sessionId;
	await transport.terminateSession();
	if (session === undefined)
		return { session: null };
	const reply = await fetch(url, {
		method: 'POST',
		headers: { 'content-type': 'application/json', 'mcp-session-id': session },
		body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
	});
	await reply.text();
	return { session, status: reply.status };
}

// What clients can be asked, and how they answer.
export const CAPABILITIES = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };
export const ANSWERS = {
	'sampling/createMessage': (params) => ({
		model: 'interop', role: 'assistant',
		content: { type: 'text', text: `model: ${params.messages[0].content.text}` },
	}),
	'elicitation/create': (params) => params.mode === 'url' ? { action: 'accept' } :
		{ action: 'accept', content: { answer: `form: ${params.message}` } },
	'roots/list': () => ({ roots: [{ uri: 'file:///srv/interop' }] }),
};

export function config() {
	return JSON.parse(readFileSync(process.argv[2], 'utf8'));
}
