// SPDX-License-Identifier: MIT
// SDK clients in the middle of a session: calls, says so, waits for a line on standard
// input (mcpvisor is started anew meanwhile), and calls again.
// Usage: node driver_restart.mjs URL sdk1|client2-legacy|client2-modern

import { createInterface } from 'node:readline';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import * as v1http from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';

const [url, kind] = process.argv.slice(2);
let streams = 0;
let changes = 0;

// tells how often the stream of notices was opened
async function counted(target, init) {
	const reply = await fetch(target, init);
	if (init?.method === 'GET' && reply.ok)
		streams++;
	return reply;
}

const options = { fetch: counted };
const info = { name: 'interop-restart', version: '1.0.0' };
const [client, transport] = kind === 'sdk1' ?
	[new v1.Client(info), new v1http.StreamableHTTPClientTransport(new URL(url), options)] :
	[new v2.Client(info, { versionNegotiation: {
		mode: kind === 'client2-legacy' ? 'legacy' : { pin: '2026-07-28' } } }),
	new v2.StreamableHTTPClientTransport(new URL(url), options)];

function say(line) {
	process.stdout.write(JSON.stringify({
		session: transport.sessionId, streams, changes, ...line,
	}) + '\n');
}

async function greet(name) {
	return client.callTool({ name: 'modern__greet', arguments: { name } });
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
if (kind === 'sdk1')
	client.setNotificationHandler(ToolListChangedNotificationSchema, () => changes++);
else
	client.setNotificationHandler('notifications/tools/list_changed', () => changes++);
await client.connect(transport);
say({ result: await greet('before') });
for (let n = 1; !(await lines.next()).done; n++) {
	try {
		say({ result: await greet(`after ${n}`), listed: await client.listTools() });
	} catch (e) {
		say({ error: String(e) });
	}
}
await transport.terminateSession();
await client.close();
process.exit(0);
