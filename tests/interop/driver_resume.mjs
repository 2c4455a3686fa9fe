// SPDX-License-Identifier: MIT
// An SDK client whose connections break in the middle of a call: it finds its way back
// to the stream and gets what it missed.
// Usage: node driver_resume.mjs URL

import { createServer, connect } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const target = new URL(process.argv[2]);
const open = new Set();
let resumed = 0;

// what stands between client and server, and can be cut
const line = createServer((near) => {
	const far = connect(Number(target.port), target.hostname);
	for (const [one, other] of [[near, far], [far, near]]) {
		open.add(one);
		one.on('error', () => {});
		one.on('close', () => { open.delete(one); other.destroy(); });
	}
	near.pipe(far).pipe(near);
});
await new Promise((ready) => line.listen(0, '127.0.0.1', ready));

const transport = new StreamableHTTPClientTransport(
	new URL(`http://127.0.0.1:${line.address().port}${target.pathname}`), {
		fetch: (to, init) => {
			resumed += init?.method === 'GET' && init.headers.has('last-event-id');
			return fetch(to, init);
		},
		reconnectionOptions: { initialReconnectionDelay: 50, maxReconnectionDelay: 100,
			reconnectionDelayGrowFactor: 1, maxRetries: 10 },
	});
const client = new Client({ name: 'interop-resume', version: '1.0.0' });
const errors = [];
client.onerror = (e) => errors.push(String(e?.message));
await client.connect(transport);
const seen = [];
const result = await client.callTool({
	name: 'everything__trigger-long-running-operation',
	arguments: { duration: 3, steps: 6 },
}, undefined, {
	timeout: 20000,
	onprogress: (p) => {
		seen.push(p.progress);
		if (p.progress === 2 || p.progress === 4)
			for (const socket of open)
				socket.destroy();
	},
});
process.stdout.write(JSON.stringify({ seen, result, resumed, errors }) + '\n');
await client.close();
line.close();
for (const socket of open)
	socket.destroy();
