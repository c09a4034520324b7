import { useEffect, useRef, useState } from "react";
import { act, address, Refused, useAct, usePage } from "../api";
import { copied, useCommands } from "../commands";
import { visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { ActionDone, ConsoleError, ForkText, ModeRequest, NodePage, RunsChanged, SessionPage } from "../types";
import { CopyButton, Dialog, ErrorBox, Json, Skeleton, Time } from "../ui";
import { comparedTips } from "./Tree";

const UNFINISHED = ["in_progress", "waiting", "blocked", "stale"];

interface InspectorProps {
  page: SessionPage;
  selected: number | null;
  onChanged: () => void;
  onFork: (node: number) => void;
}

export function Inspector({ page, selected, onChanged, onFork }: InspectorProps) {
  const { status } = page;
  const run = status.runs.find((each) => each.runId === page.runId);
  return (
    <aside className="inspector" aria-label="Details and actions">
      {selected !== null && <SelectedNode page={page} node={selected} onFork={onFork} />}
      <h2>Run</h2>
      <dl>
        {run && (
          <>
            <dt>Pending</dt>
            <dd>{run.abandoned ? visible(run.abandoned) : run.pending.kind === "nothing" ? "nothing" : visible(run.pending.title)}</dd>
            <dt>Gaps</dt>
            <dd>
              {run.gaps}
              {run.gapList.map((gap) => (
                <span key={gap.number} className="quiet gap">
                  {visible(gap.summary)}
                  {gap.resolved && ` (closed: ${visible(gap.resolved)})`}
                </span>
              ))}
            </dd>
            <dt>Mode</dt>
            <dd>
              {run.mode}, {run.riskPolicy} risk
            </dd>
            <dt>Workflow</dt>
            <dd>
              <Link to={`/console/workflows/${encodeURIComponent(run.workflowId)}`}>{run.workflowId}</Link>
              <code className="truncate quiet" title={run.workflowHash}>
                {run.workflowHash}
              </code>
            </dd>
          </>
        )}
        {Object.entries(status.observed).map(([key, value]) => (
          <div key={key}>
            <dt>{key.replaceAll("_", " ")}</dt>
            <dd className="truncate" title={value}>
              {visible(value)}
            </dd>
          </div>
        ))}
        <dt>Events</dt>
        <dd>{status.events}</dd>
      </dl>
      <Continue page={page} />
      <Actions page={page} onChanged={onChanged} />
    </aside>
  );
}

function SelectedNode({ page, node, onFork }: { page: SessionPage; node: number; onFork: (node: number) => void }) {
  const route = useRoute();
  const { data, error } = usePage<NodePage>(`sessions/${page.status.ref}/node`, { node: String(node) }, page.status.sessionId);
  const link = `${window.location.origin}${withQuery(route, { at: String(node) })}`;
  useCommands([
    { label: `Fork from node ${node}`, hint: "action", run: () => onFork(node) },
    { label: `Copy a link to node ${node}`, hint: "action", run: copied(link) },
  ]);
  return (
    <section aria-label={`Node ${node}`}>
      <h2>
        Node {node}
        <Link className="close" to={withQuery(route, { at: null })} aria-label="Close the node" title="Close">
          ×
        </Link>
      </h2>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={3} />}
      {data && (
        <dl>
          <dt>Waits for</dt>
          <dd>{data.pending.kind === "nothing" ? "nothing" : visible(data.pending.title)}</dd>
          <dt>Made</dt>
          <dd>
            <Time at={data.createdAt} />
            {data.parent !== null && `, after node ${data.parent}`}
          </dd>
          <dt>Activity, mode</dt>
          <dd>
            {visible(data.activity) || "–"}, {data.mode}
          </dd>
          <dt>Variables</dt>
          <dd>{Object.keys(data.variables).length ? <Json value={data.variables} /> : "none"}</dd>
        </dl>
      )}
      <div className="buttons">
        <button type="button" className="button small" onClick={() => onFork(node)}>
          Fork from here
        </button>
        <CopyButton text={link} label="Copy a link to this node">
          Link
        </CopyButton>
      </div>
    </section>
  );
}

function Continue({ page }: { page: SessionPage }) {
  const { ref, sessionId } = page.status;
  const sentence = `Resume the workflow session ${ref} and continue with it.`;
  const command = `interlock status ${ref}`;
  useCommands([
    { label: "Copy resume sentence", hint: "action", run: copied(sentence) },
    { label: "Copy session id", hint: "action", run: copied(sessionId) },
    { label: "Copy CLI command", hint: "action", run: copied(command) },
    { label: "Copy link", hint: "action", run: () => copied(window.location.href)() },
  ]);
  return (
    <>
      <h2>Continue in a chat</h2>
      <p className="quiet">Paste this to your agent:</p>
      <div className="command">
        <code>{sentence}</code>
        <CopyButton text={sentence} label="Copy resume sentence" />
      </div>
      <div className="buttons">
        <CopyButton text={sessionId} label="Copy session id">
          Id
        </CopyButton>
        <CopyButton text={command} label="Copy CLI command">
          CLI command
        </CopyButton>
        <CopyButton text={() => window.location.href} label="Copy link">
          Link
        </CopyButton>
      </div>
    </>
  );
}

function Actions({ page, onChanged }: { page: SessionPage; onChanged: () => void }) {
  const { status } = page;
  const { send, message, error } = useAct();
  const tree = page.trees.find((each) => each.runId === page.runId);
  const mode = useRef<HTMLSelectElement>(null);
  const [pin, setPin] = useState("");
  const keep = () => void send<RunsChanged>("keep", { sessionIds: [status.sessionId], keep: !status.keep }, (done) => done.message).then(onChanged);
  const bundle = address(`sessions/${status.ref}/export.json`, { form: "json" });
  const text = address(`sessions/${status.ref}/export.json`, { form: "md" });
  const comparison = tree ? comparedTips(tree, status.ref) : null;
  const [isGivingUp, setGivingUp] = useState(false);
  const shownRun = page.runs.find((each) => each.runId === page.runId);
  const canGiveUp = shownRun !== undefined && UNFINISHED.includes(shownRun.status);
  useCommands([
    ...(canGiveUp ? [{ label: "Abandon this run", hint: "action", run: () => setGivingUp(true) }] : []),
    { label: "Change mode", hint: "action", run: () => mode.current?.focus() },
    { label: status.keep ? "Keep no longer" : "Keep", hint: "action", run: keep },
    { label: "Export bundle", hint: "action", run: () => window.location.assign(bundle) },
    { label: "Export Markdown", hint: "action", run: () => window.location.assign(text) },
    { label: "Print or save as PDF", hint: "action", run: () => window.print() },
    ...(comparison ? [{ label: "Compare the branches", hint: "action", run: () => go(comparison) }] : []),
  ]);
  return (
    <>
      <h2>Actions</h2>
      {page.modes.length > 0 && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const request = { sessionId: status.sessionId, mode: mode.current?.value as ModeRequest["mode"], pin } satisfies ModeRequest;
            void send<ActionDone>("mode", request, (done) => done.message).then((isDone) => {
              if (isDone) setPin("");
              onChanged();
            });
          }}
        >
          <label className="field">
            Mode of unfinished branches
            <select ref={mode} defaultValue={page.modes[0]?.mode ?? "guided"} key={page.modes[0]?.mode}>
              <option value="guided">guided: stop for everything</option>
              <option value="stop">stop: only for gates and inputs</option>
              <option value="never-stop">never-stop: record gaps instead</option>
            </select>
          </label>
          {error?.code.startsWith("PIN") && (
            <label className="field">
              PIN
              <input type="password" value={pin} onChange={(event) => setPin(event.target.value)} autoComplete="off" autoFocus />
            </label>
          )}
          <button type="submit" className="button small">
            Set mode
          </button>
        </form>
      )}
      <div className="buttons">
        <button type="button" className="button small" onClick={keep}>
          {status.keep ? "Keep no longer" : "Keep"}
        </button>
        <a className="button small" href={bundle} download>
          Export bundle
        </a>
        <a className="button small" href={text} download>
          Markdown
        </a>
        <button type="button" className="button small" onClick={() => window.print()}>
          Print or PDF
        </button>
        {canGiveUp && (
          <button type="button" className="button small danger" onClick={() => setGivingUp(true)}>
            Abandon…
          </button>
        )}
      </div>
      {isGivingUp && shownRun && (
        <Dialog title="Abandon this run" onClose={() => setGivingUp(false)}>
          <form
            className="abandon"
            onSubmit={(event) => {
              event.preventDefault();
              const reason = new FormData(event.currentTarget).get("reason");
              void send<ActionDone>("abandon", { sessionId: status.sessionId, runId: shownRun.runId, reason }, (done) => done.message).then(() => {
                setGivingUp(false);
                onChanged();
              });
            }}
          >
            <p>
              The run “{visible(shownRun.title)}” ends for good, on all its branches. It stays readable, and nothing in it waits for you any more.
            </p>
            <label className="field">
              Why
              <textarea name="reason" rows={2} autoFocus />
            </label>
            <div className="buttons">
              <button type="submit" className="button danger">
                Abandon the run
              </button>
              <button type="button" className="button" onClick={() => setGivingUp(false)}>
                Cancel
              </button>
            </div>
          </form>
        </Dialog>
      )}
      <p role="status">{message}</p>
      {error && <ErrorBox error={error} />}
    </>
  );
}

/** What to say to an agent so that it goes on from a node. The text holds a token, so it is asked for when it is needed. */
export function ForkDialog({ sessionId, node, onClose }: { sessionId: string; node: number; onClose: () => void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState<ConsoleError | null>(null);
  useEffect(() => {
    void act<ForkText>("fork", { sessionId, node }).then(
      (answer) => setText(answer.text),
      (refused: unknown) => {
        if (refused instanceof Refused) setError(refused.error);
      },
    );
  }, [sessionId, node]);
  return (
    <Dialog title={`Fork from node ${node}`} onClose={onClose}>
      <p>Paste this into a chat. The agent goes on from here on a new branch; the branches that are there stay as they are.</p>
      {error && <ErrorBox error={error} />}
      {!text && !error && <Skeleton rows={3} />}
      {text && (
        <>
          <textarea className="paste" readOnly rows={8} value={text} aria-label="Text for the chat" onFocus={(event) => event.target.select()} />
          <div className="buttons">
            <CopyButton text={text} label="Copy the text">
              Copy
            </CopyButton>
            <button type="button" className="button small" onClick={onClose}>
              Close
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}
