// SPDX-License-Identifier: MIT
// Passes requests from standard input on to an HTTP stack of node, and what comes
// back to standard output, a JSON line each; interop_stacks.py is the other side.
// Usage: node http_bridge.mjs URL KIND [SOCKET]

import { createInterface } from 'node:readline';

const [url, kind, socketPath] = process.argv.slice(2);
const { origin, pathname: path } = new URL(url);
const MANY = 32;
const aborts = new Map();

function say(exchange, event, rest = {}) {
	process.stdout.write(JSON.stringify({ exchange, event, ...rest }) + '\n');
}

function sayData(exchange, chunk) {
	say(exchange, 'data', { data: Buffer.from(chunk).toString('base64') });
}

// A body whose length nobody knows: it is sent in chunks.
function slowly(body) {
	const bytes = Buffer.from(body);
	const half = bytes.length >> 1;
	return new ReadableStream({
		start(controller) {
			controller.enqueue(bytes.subarray(0, half));
			controller.enqueue(bytes.subarray(half));
			controller.close();
		},
	});
}

async function viaFetch({ exchange, method, headers, body }) {
	const controller = new AbortController();
	const streamed = kind === 'stream' && body;
	aborts.set(exchange, () => controller.abort());
	try {
		const reply = await fetch(url, {
			method, headers,
			signal: controller.signal,
			body: streamed ? slowly(body) : body ?? undefined,
			...(streamed && { duplex: 'half' }),
		});
		say(exchange, 'head', {
			status: reply.status, headers: Object.fromEntries(reply.headers),
		});
		for await (const chunk of reply.body ?? [])
			sayData(exchange, chunk);
		say(exchange, 'end');
	} catch (e) {
		say(exchange, 'error', { message: String(e?.cause ?? e) });
	}
}

// node's own copy of undici shows its Agent here, once fetch has been used
async function agent() {
	await fetch('data:,');
	const Agent = globalThis[Symbol.for('undici.globalDispatcher.1')].constructor;
	return new Agent({
		undici: {},
		pipeline: { pipelining: MANY, connections: 1 },
		socket: { connect: { socketPath } },
	}[kind]);
}

function pairs(raw) {
	const found = {};
	for (let i = 0; i < raw.length; i += 2)
		found[String(raw[i]).toLowerCase()] = String(raw[i + 1]);
	return found;
}

// Both generations of undici's handlers: each version takes the one it knows.
function handler(exchange) {
	const head = (status, headers) => {
		if (status >= 200)
			say(exchange, 'head', { status, headers });
	};
	const error = (e) => say(exchange, 'error', { message: String(e) });
	return {
		onConnect: (abort) => aborts.set(exchange, abort),
		onHeaders: (status, raw) => {
			head(status, pairs(raw));
			return true;
		},
		onData: (chunk) => {
			sayData(exchange, chunk);
			return true;
		},
		onComplete: () => say(exchange, 'end'),
		onError: error,
		onRequestStart: (controller) => aborts.set(exchange,
			() => controller.abort(new Error('given up'))),
		onResponseStart: (controller, status, headers) => head(status, headers),
		onResponseData: (controller, chunk) => sayData(exchange, chunk),
		onResponseEnd: () => say(exchange, 'end'),
		onResponseError: (controller, e) => error(e),
	};
}

const dispatcher = kind === 'fetch' || kind === 'stream' ? null : await agent();

function viaUndici({ exchange, method, headers, body }) {
	dispatcher.dispatch({
		origin, path, method, headers, body,
		// or undici holds back what is not known to be idempotent
		...(kind === 'pipeline' && { idempotent: true, blocking: false }),
	}, handler(exchange));
}

createInterface({ input: process.stdin })
	.on('line', (line) => {
		const order = JSON.parse(line);
		if (order.op === 'close')
			aborts.get(order.exchange)?.();
		else if (dispatcher)
			viaUndici(order);
		else
			void viaFetch(order);
	})
	.on('close', () => process.exit(0));
