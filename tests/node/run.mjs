// Drives a whole run of a workflow through a server with one of the official clients.
// Usage: node run.mjs (sdk|client) MODE WORKFLOW COMMAND ARGUMENT…

const [flavour, mode, workflowId, command, ...args] = process.argv.slice(2);

const { Client, StdioClientTransport } = await (flavour === 'sdk' ? sdk() : client());

async function sdk() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  return { Client, StdioClientTransport };
}

async function client() {
  const { Client } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  return { Client, StdioClientTransport };
}

const negotiation = mode === 'default' ? {} : { versionNegotiation: { mode } };
const talker = new Client({ name: 'run', version: '1' }, { capabilities: {}, ...negotiation });
await talker.connect(new StdioClientTransport({ command, args }));
await talker.listTools();

const call = async (name, input) => (await talker.callTool({ name, arguments: input })).structuredContent;
const seen = [];
let answer = await call('start_workflow', { workflowId, context: { goal: 'from node' } });
while (!answer.isComplete && seen.length < 20) {
  seen.push(answer.pending.stepId);
  const { stateToken, ackToken } = answer;
  answer = await call('continue_workflow', { stateToken, ackToken, output: { notesMarkdown: 'done' } });
}
const refused = await call('continue_workflow', { stateToken: 'st.v1.nonsense', ackToken: 'ack.v1.nonsense' });
await talker.close();

console.log(JSON.stringify({ seen, complete: answer.isComplete, refused: refused.code }));
