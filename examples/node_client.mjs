// Run a workflow over HTTP with the official Node client, and answer its gate through elicitation.
//
//   npm install @modelcontextprotocol/client
//   node examples/node_client.mjs [PATH/TO/interlock]
//
// Starts a server on a free port with a data directory of its own.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const interlock = process.argv[2] ?? 'interlock';
const workflows = process.argv[3] ?? join(dirname(fileURLToPath(import.meta.url)), 'workflows');
const data = await mkdtemp(join(tmpdir(), 'interlock-example-'));
const options = ['serve', '--no-auth', '--port', '0', '--quiet', '--data-dir', data, '--workflows', workflows];
const server = spawn(interlock, options, { stdio: ['ignore', 'ignore', 'pipe'] });
const [line] = await new Promise((resolve) => {
  createInterface(server.stderr).once('line', (first) => resolve([first]));
});
const url = new URL(line.split(' ').at(-1)); // "interlock: listening on http://127.0.0.1:…/mcp"

const client = new Client({ name: 'example', version: '1' }, { capabilities: { elicitation: { form: {} } } });
client.setRequestHandler('elicitation/create', async ({ params }) => {
  console.log(`? ${params.message.split("\n")[0]} → yes`);
  return { action: 'accept', content: { choice: 'yes' } };
});

try {
  await client.connect(new StreamableHTTPClientTransport(url));
  const call = async (name, input) => (await client.callTool({ name, arguments: input })).structuredContent;
  let answer = await call('start_workflow', { workflowId: 'example.greeting' });
  while (!answer.isComplete) {
    console.log(`- ${answer.pending.stepId}`);
    const { stateToken, ackToken } = answer;
    answer = await call('continue_workflow', { stateToken, ackToken, output: { notesMarkdown: 'Done.' } });
  }
  console.log('complete');
  await client.close();
} finally {
  server.kill('SIGTERM');
  await rm(data, { recursive: true, force: true });
}
