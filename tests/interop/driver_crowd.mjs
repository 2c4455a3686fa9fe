// SPDX-License-Identifier: MIT
// Many clients of both eras at once on raw fetch, all with the same ids and the same
// progress tokens. Prints one JSON line for each of them: what came on its streams.
// Usage: node driver_crowd.mjs URL COUNT

const [url, count] = [process.argv[2], Number(process.argv[3])];
const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
const ID = 7;
const TOKEN = 'same';
const OVERDUE_MS = 90000;
const META = {
	'io.modelcontextprotocol/protocolVersion': MODERN,
	'io.modelcontextprotocol/clientInfo': { name: 'crowd', version: '1' },
	'io.modelcontextprotocol/clientCapabilities': {},
};

// Messages of an answer, as text, as they come.
async function* messages(reply) {
	if (!reply.headers.get('content-type')?.startsWith('text/event-stream')) {
		const body = await reply.text();
		if (body)
			yield body;
		return;
	}
	let rest = '';
	for await (const chunk of reply.body.pipeThrough(new TextDecoderStream())) {
		const events = (rest + chunk).split('\n\n');
		rest = events.pop();
		for (const event of events) {
			// one at the front may have nothing but an id
			const data = /^data: (.+)$/m.exec(event);
			if (data)
				yield data[1];
		}
	}
}

class Member {
	constructor(index) {
		this.index = index;
		this.modern = index % 2 === 1;
		this.seen = {};
		this.statuses = [];
	}

	async send(method, params, headers = {}, signal = undefined) {
		const notification = method.startsWith('notifications/');
		const name = params.name ?? params.uri;
		const reply = await fetch(url, {
			method: 'POST',
			signal,
			headers: {
				'Content-Type': 'application/json',
				'Accept': 'application/json, text/event-stream',
				...(this.modern && {
					'MCP-Protocol-Version': MODERN,
					'Mcp-Method': method,
					...(name && { 'Mcp-Name': name }),
				}),
				...(this.session && {
					'Mcp-Session-Id': this.session,
					'MCP-Protocol-Version': LEGACY,
				}),
				...headers,
			},
			body: JSON.stringify({
				jsonrpc: '2.0', method, ...(!notification && { id: ID }),
				params: this.modern ?
					{ ...params, _meta: { ...META, ...params._meta } } : params,
			}),
		});
		this.statuses.push(reply.status);
		return reply;
	}

	async ask(round, method, params) {
		const seen = this.seen[round] = [];
		for await (const text of messages(await this.send(method, params)))
			seen.push(text);
	}

	call(round, name, args, withProgress = false) {
		return this.ask(round, 'tools/call', {
			name, arguments: args,
			...(withProgress && { _meta: { progressToken: TOKEN } }),
		});
	}

	async hello() {
		if (this.modern)
			return this.ask('hello', 'server/discover', {});
		const reply = await this.send('initialize', {
			protocolVersion: LEGACY, capabilities: {},
			clientInfo: { name: `crowd ${this.index}`, version: '1' },
		});
		this.session = reply.headers.get('mcp-session-id');
		this.seen.hello = [await reply.text()];
		await (await this.send('notifications/initialized', {})).text();
	}

	// Opens the stream of notices; this.watched comes with the first update on it.
	async watch() {
		const uri = `demo://resource/dynamic/text/${this.index + 1}`;
		const seen = this.seen.watch = [];
		this.end = new AbortController();
		const stream = this.modern ?
			await this.send('subscriptions/listen',
				{ notifications: { resourceSubscriptions: [uri] } }, {},
				this.end.signal) :
			await fetch(url, {
				headers: {
					'Accept': 'text/event-stream', 'Mcp-Session-Id': this.session,
				},
				signal: this.end.signal,
			});
		if (!this.modern)
			await this.ask('subscribe', 'resources/subscribe', { uri });
		this.watched = (async () => {
			for await (const text of messages(stream)) {
				seen.push(text);
				if (text.includes('notifications/resources/updated'))
					return;
			}
		})();
	}

	async leave() {
		this.end.abort();
		if (!this.modern)
			this.statuses.push((await fetch(url, {
				method: 'DELETE', headers: { 'Mcp-Session-Id': this.session },
			})).status);
	}
}

const members = Array.from({ length: count }, (_, i) => new Member(i));

// Everybody does one thing at the same time; the next begins when all have done it.
async function together(what) {
	await Promise.all(members.map(what));
}

const overdue = setTimeout(() => {
	console.error('overdue');
	process.exit(1);
}, OVERDUE_MS);

await together((m) => m.hello());
await together((m) => m.call('greet', 'modern__greet', { name: `member ${m.index}` }));
await together((m) => m.call('echo', 'everything__echo', { message: `member ${m.index}` }));
await together((m) => m.call('unknown', `nobody__tool-${m.index}`, {}));
await together((m) => m.call('count', 'modern__count', { to: 1 + m.index % 8 }, true));
await together((m) => m.call('long', 'everything__trigger-long-running-operation',
	{ duration: 0.5, steps: 1 + m.index }, true));
await together((m) => m.ask('read', 'resources/read',
	{ uri: `interop://item/${m.index}` }));
await together((m) => m.watch());
await members[0].call('toggle', 'everything__toggle-subscriber-updates', {});
await together((m) => m.watched);
await members[0].call('toggle', 'everything__toggle-subscriber-updates', {});
await together((m) => m.leave());
for (const { index, modern, session, seen, statuses } of members)
	process.stdout.write(JSON.stringify({
		index, modern, session, statuses,
		seen: Object.fromEntries(Object.entries(seen).map(
			([round, texts]) => [round, texts.map((t) => JSON.parse(t))])),
	}) + '\n');
clearTimeout(overdue);
