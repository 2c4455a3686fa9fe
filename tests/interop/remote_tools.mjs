// SPDX-License-Identifier: MIT
// What every server of remote_servers.mjs offers, for McpServer of either SDK: their ways to
// ask a client differ, the rest does not.
//
// ask: {form, url, model, roots}, functions (ctx, text) -> the words of the answer, or a
// result that is returned as it is. notes: what happens is told by updated(uri) and grown().

const LANGUAGES = ['c', 'clojure', 'cobol', 'python', 'rust'];
const STEP_MS = 30;

export function text(t) {
	return { content: [{ type: 'text', text: t }] };
}

function sleep(ms, signal) {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, ms);
		signal?.addEventListener('abort', () => {
			clearTimeout(timer);
			resolve();
		});
	});
}

// state: of all its instances: the counter, how many tools have come, and how many slow calls
// were given up.
export function offer(server, { name, z, shape, ask, state, notes, of, completable }) {
	const uri = `interop-${name}://counter`;
	const asks = (kind) => async ({ text: t }, ctx) => {
		const got = await ask[kind](ctx, t);
		return typeof got === 'string' ? text(got) : got;
	};
	const tool = (title, args, run) =>
		server.registerTool(title, { description: title, inputSchema: shape(args) }, run);

	tool('greet', { name: z.string() }, async ({ name: who }) => text(`${name}: ${who}`));
	tool('fail', { why: z.string() }, async ({ why }) => ({ ...text(why), isError: true }));
	tool('count', { to: z.number().int() }, async ({ to }, ctx) => {
		const { meta, notify, signal } = of(ctx);
		for (let i = 1; i <= to; i++) {
			await notify({
				method: 'notifications/progress',
				params: { progressToken: meta.progressToken, progress: i, total: to },
			});
			await sleep(STEP_MS, signal);
		}
		return text(`counted to ${to}`);
	});
	tool('chat', { text: z.string() }, async ({ text: t }, ctx) => {
		await of(ctx).notify({
			method: 'notifications/message',
			params: { level: 'warning', logger: name, data: t },
		});
		await sleep(STEP_MS);
		return text('said');
	});
	tool('slow', { tag: z.string() }, async ({ tag }, ctx) => {
		const { meta, notify, signal } = of(ctx);
		await notify({
			method: 'notifications/progress',
			params: { progressToken: meta.progressToken, progress: 1, total: 2 },
		});
		await sleep(60000, signal);
		if (signal.aborted)
			state.given_up = (state.given_up ?? 0) + 1;
		return text(tag);
	});
	tool('given_up', {}, async () => text(String(state.given_up ?? 0)));
	tool('bump', {}, async () => {
		state.counter = (state.counter ?? 0) + 1;
		await notes.updated(uri);
		return text(String(state.counter));
	});
	const grown = (n) => tool(`grown${n}`, {}, async () => text(`grown ${n}`));
	tool('grow', {}, async () => {
		state.grown = (state.grown ?? 0) + 1;
		await notes.grown(() => grown(state.grown));
		return text(`grown${state.grown}`);
	});
	for (let n = 1; n <= (state.grown ?? 0); n++)
		grown(n);
	for (const kind of Object.keys(ask))
		tool(`ask_${kind}`, { text: z.string() }, asks(kind));

	server.registerResource('counter', uri, { mimeType: 'text/plain' }, async () => ({
		contents: [{ uri, mimeType: 'text/plain', text: String(state.counter ?? 0) }],
	}));
	server.registerPrompt('plan', {
		argsSchema: shape({
			language: completable(z.string(), (v) => LANGUAGES.filter((l) => l.startsWith(v))),
		}),
	}, ({ language }) => ({
		messages: [{
			role: 'user', content: { type: 'text', text: `Plan a program in ${language}` },
		}],
	}));
}
