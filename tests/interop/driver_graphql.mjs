// SPDX-License-Identifier: MIT
// The client of @modelcontextprotocol/sdk, which checks structuredContent against the
// outputSchema of its tool: lists the tools, makes the calls of argv[2] ({command, args, env,
// calls: [[name, arguments], ...]}), prints {tools, results}.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const { calls, ...server } = JSON.parse(process.argv[2]);
const client = new Client({ name: 'interop-graphql', version: '1.0.0' });
await client.connect(new StdioClientTransport({ ...server, stderr: 'inherit' }));
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of calls)
	results.push(await client.callTool({ name, arguments: args })
		.catch((e) => ({ thrown: String(e) })));
console.log(JSON.stringify({ tools, results }));
await client.close();
