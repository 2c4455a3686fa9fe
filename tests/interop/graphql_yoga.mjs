// SPDX-License-Identifier: MIT
// A GraphQL endpoint on graphql-yoga that fails in each way that its resolvers can choose.
// Usage: node graphql_yoga.mjs PORT
//
// At /graphql it is itself; at /drip its bodies come a byte at a time; at /closed it answers
// no introspection. POST /forget sets back what mutations have done; GET /count says how
// many there were.

import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { GraphQLError, GraphQLScalarType, Kind, NoSchemaIntrospectionCustomRule } from 'graphql';
import { createSchema, createYoga } from 'graphql-yoga';

const typeDefs = /* GraphQL */ `
	scalar BigInt
	enum Status { OPEN CLOSED }
	input Filter { status: Status = OPEN, ids: [ID!] }
	type User {
		id: ID!
		name: String
		email: String
		manager: User
		friends(first: Int = 2): [User!]
	}
	type Query {
		"One user, if there is such."
		user(id: ID!): User
		users(filter: Filter): [User!]!
		viewer: User
		echo(n: BigInt): String
		literal(n: BigInt): String
		slow(ms: Int!): String
		status(code: Int!, after: Int): String
		code(code: String!): String
		bug: String
		long(bytes: Int!): String
	}
	type Mutation {
		rename(id: ID!, name: String): User
		renameAndFail(id: ID!, name: String): User
		renameSlowly(id: ID!, ms: Int!): User
	}
`;

let changes = 0;
const user = (id) => ({ id, name: `user ${id}` });
const fail = (message, extensions) => {
	throw new GraphQLError(message, { extensions });
};

const resolvers = {
	BigInt: new GraphQLScalarType({
		name: 'BigInt',
		parseValue: (v) => `value ${v}`,
		parseLiteral: (ast) => (ast.kind === Kind.INT ? `literal ${ast.value}` : `text ${ast.value}`),
	}),
	User: {
		email: ({ id }) => (id === '1' ? fail('Not authorized', { code: 'FORBIDDEN' }) : `${id}@x`),
		manager: ({ id }) => user(`${id}0`),
		friends: (_, { first }) => Array.from({ length: first }, (_x, i) => user(String(i + 2))),
	},
	Query: {
		user: (_, { id }) => (id === '404' ? null : user(id)),
		users: (_, { filter }) => (filter?.ids ?? ['1', '2']).map(user),
		viewer: () => fail('You must sign in', { code: 'UNAUTHENTICATED' }),
		echo: (_, { n }) => n,
		slow: async (_, { ms }) => { await pause(ms); return 'late'; },
		status: (_, { code, after }) => fail(`status ${code}`, {
			http: { status: code, headers: after ? { 'Retry-After': String(after) } : {} },
		}),
		code: (_, { code }) => fail('as asked', { code, stacktrace: ['at secret.js:1'] }),
		bug: () => { throw new Error('password=hush'); },
		long: (_, { bytes }) => 'x'.repeat(bytes),
	},
	Mutation: {
		rename: (_, { id, name }) => { changes++; return { id, name }; },
		renameAndFail: () => { changes++; return fail('projection failed'); },
		renameSlowly: async (_, { id, ms }) => { changes++; await pause(ms); return user(id); },
	},
};

const schema = createSchema({ typeDefs, resolvers });
const closed = {
	onValidate: ({ addValidationRule }) => addValidationRule(NoSchemaIntrospectionCustomRule),
};
const yogaAt = (graphqlEndpoint, plugins = []) => createYoga({
	schema, graphqlEndpoint, plugins, logging: false, graphiql: false,
});
const yogas = { '/graphql': yogaAt('/graphql'), '/drip': yogaAt('/drip'), '/closed': yogaAt('/closed', [closed]) };

// What is written goes out slowly.
function drip(res) {
	const bytes = [];
	res.write = (chunk) => { bytes.push(Buffer.from(chunk)); return true; };
	const end = res.end.bind(res), write = Object.getPrototypeOf(res).write.bind(res);
	res.end = async (chunk) => {
		if (chunk)
			bytes.push(Buffer.from(chunk));
		for (const b of Buffer.concat(bytes)) {
			write(Buffer.from([b]));
			await pause(2);
		}
		end();
	};
}

const server = createServer((req, res) => {
	if (req.url === '/count' || req.url === '/forget') {
		changes = req.url === '/forget' ? 0 : changes;
		res.end(String(changes));
		return;
	}
	if (req.url === '/drip')
		drip(res);
	const yoga = yogas[req.url];
	if (yoga)
		yoga(req, res);
	else
		res.writeHead(404).end('<html>none here</html>');
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log(server.address().port));
