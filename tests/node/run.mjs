// Drives a whole run of a workflow through a server with one of the official clients; gates are answered.
// Usage: node run.mjs (sdk|client) MODE WORKFLOW (URL | COMMAND ARGUMENT…)

const [flavour, mode, workflowId, command, ...args] = process.argv.slice(2);

const { Client, Pipe, Http, onElicit } = await (flavour === 'sdk' ? sdk() : client());

async function sdk() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport: Pipe } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  return { Client, Pipe, Http, onElicit: ElicitRequestSchema };
}

async function client() {
  const { Client, StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport: Pipe } = await import('@modelcontextprotocol/client/stdio');
  return { Client, Pipe, Http, onElicit: 'elicitation/create' };
}

const negotiation = mode === 'default' ? {} : { versionNegotiation: { mode } };
const capabilities = { elicitation: { form: {} } };
const talker = new Client({ name: 'run', version: '1' }, { capabilities, ...negotiation });
const questions = [];
talker.setRequestHandler(onElicit, async ({ params }) => {
  questions.push(params.message.split("\n")[0]); // the agent's report is below it
  return { action: 'accept', content: { choice: 'right' } };
});
const isUrl = command.startsWith('http://');
await talker.connect(isUrl ? new Http(new URL(command)) : new Pipe({ command, args }));
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

console.log(JSON.stringify({ seen, questions, complete: answer.isComplete, refused: refused.code }));
