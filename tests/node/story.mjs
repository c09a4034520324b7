// Talks to a server with one of the official clients and prints what it heard as one JSON object.
// Usage: node story.mjs (sdk|client) MODE ACTION COMMAND ARGUMENT…

const [flavour, mode, action, command, ...args] = process.argv.slice(2);

const { Client, transport, onElicit } = await (flavour === 'sdk' ? sdk() : client());

async function sdk() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  return { Client, transport: StdioClientTransport, onElicit: ElicitRequestSchema };
}

async function client() {
  const { Client } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  return { Client, transport: StdioClientTransport, onElicit: 'elicitation/create' };
}

const negotiation = mode === 'default' ? {} : { versionNegotiation: { mode } };
const talker = new Client(
  { name: 'story', version: '1' },
  { capabilities: { elicitation: { form: {} } }, ...negotiation },
);
talker.setRequestHandler(onElicit, async () =>
  action === 'accept' ? { action, content: { choice: 'yes' } } : { action },
);

await talker.connect(new transport({ command, args }));
const server = talker.getServerVersion();
const { tools } = await talker.listTools();
const echo = await talker.callTool({ name: 'echo', arguments: { text: 'grüße' } });
const who = await talker.callTool({ name: 'whoami', arguments: {} });
const refused = await talker.callTool({ name: 'echo', arguments: {} });
const confirm = await talker.callTool({ name: 'confirm', arguments: {} });
await talker.close();

console.log(JSON.stringify({
  server,
  tools: tools.map(tool => tool.name),
  echo: [echo.content, echo.structuredContent],
  who: who.structuredContent,
  refused: refused.isError,
  confirm: confirm.structuredContent,
}));
