import { useEffect, useMemo, useRef, useState } from "react";
import { act, address, get, Refused, usePage } from "../api";
import { Artifact, Artifacts } from "../artifacts";
import { Markdown, visible } from "../markdown";
import { Link, useRoute, withQuery } from "../router";
import type {
  ActionDone,
  ConsoleError,
  EventsPage,
  HandedIn,
  LaneTree,
  ModeRequest,
  RunGraph,
  SessionPage,
  StoryStep,
} from "../types";
import { CopyButton, Empty, ErrorBox, Json, Skeleton, StatusBadge, Time, duration } from "../ui";
import { Graph } from "./Graph";

const TABS = ["story", "artifacts", "timeline", "graph", "events", "raw"] as const;

export function Session({ reference }: { reference: string }) {
  const route = useRoute();
  const run = route.query.get("run") ?? undefined;
  const node = route.query.get("node") ?? undefined;
  const tab = TABS.find((each) => each === route.query.get("tab")) ?? "story";
  const [sessionId, setSessionId] = useState<string | undefined>(undefined);
  const { data, error, reload } = usePage<SessionPage>(`sessions/${encodeURIComponent(reference)}`, { run, node }, sessionId);
  useEffect(() => setSessionId(data?.status.sessionId), [data]);
  if (error && !data) return <ErrorBox error={error} />;
  if (!data) return <Skeleton rows={8} />;
  const { status, story } = data;
  const shownRun = status.runs.find((each) => each.runId === data.runId);
  const tree = data.trees.find((each) => each.runId === data.runId);
  return (
    <>
      <header className="page-head">
        <p className="crumbs">
          <Link to="/console/runs">Runs</Link> / <code>{status.ref}</code> <CopyButton text={status.sessionId} label="Copy session id" />
        </p>
        <h1>{visible(status.title)}</h1>
        <p className="facts">
          {shownRun && <StatusBadge status={shownRun.status} />}
          {shownRun && <code>{shownRun.workflowId}</code>}
          {status.observed.git_branch && <span className="quiet">branch {visible(status.observed.git_branch)}</span>}
          <span className="quiet">
            last activity <Time at={status.updatedAt} />
          </span>
        </p>
        {status.health !== "healthy" && (
          <ErrorBox error={{ code: status.health, message: `This session is damaged: ${status.reason}.`, nextAction: "Run `interlock doctor --repair`." }} />
        )}
        {data.questions.length > 0 && (
          <p className="notice">
            {data.questions.length === 1 ? "A question waits" : `${data.questions.length} questions wait`} for you: <Link to="/console/inbox">answer in the inbox</Link>
          </p>
        )}
      </header>
      {error && <ErrorBox error={error} />}
      <div className="session">
        <aside className="side" aria-label="Runs and branches">
          <h2>Runs</h2>
          <ul className="run-list">
            {status.runs.map((each) => (
              <li key={each.runId}>
                <Link to={withQuery(route, { run: each.runId, node: null })} aria-current={each.runId === data.runId ? "true" : undefined}>
                  <code>{each.workflowId}</code>
                  <span>
                    <StatusBadge status={each.status} /> {each.branches > 1 && <span className="quiet">{each.branches} branches</span>}
                  </span>
                </Link>
              </li>
            ))}
          </ul>
          {tree && <Branches tree={tree} />}
        </aside>
        <section className="centre" aria-label="Run">
          <nav className="tabs" aria-label="Views of this run">
            {TABS.map((each) => (
              <Link key={each} to={withQuery(route, { tab: each === "story" ? null : each })} aria-current={tab === each ? "page" : undefined}>
                {each[0]?.toUpperCase()}
                {each.slice(1)}
              </Link>
            ))}
          </nav>
          {!story && (
            <Empty title="No run yet" command={`interlock status ${status.ref}`}>
              <p>This session has notes only; the next workflow that an agent starts in it appears here.</p>
            </Empty>
          )}
          {story && tab === "story" && (
            <>
              {data.notes.length > 0 && (
                <section className="session-notes" aria-label="Session notes">
                  <h2>Session notes</h2>
                  {data.notes.map((text, index) => (
                    <Markdown key={index} text={text} />
                  ))}
                </section>
              )}
              {story.omitted > 0 && <p className="quiet">{story.omitted} earlier nodes are not shown; export the session to read them.</p>}
              <ol className="story">
                {story.steps.map((step) => (
                  <Step key={step.node} step={step} />
                ))}
              </ol>
            </>
          )}
          {story && tab === "artifacts" && <Artifacts reference={status.ref} sessionId={status.sessionId} run={data.runId} node={node} />}
          {story && tab === "timeline" && <Timeline steps={story.steps} />}
          {story && tab === "graph" && <PathGraph reference={status.ref} sessionId={status.sessionId} run={data.runId} node={node} />}
          {tab === "events" && <Events reference={status.ref} sessionId={status.sessionId} />}
          {tab === "raw" && (
            <>
              <p>
                <a href={address(`sessions/${status.ref}.json`, { run, node })}>This page as JSON</a>
              </p>
              <Json value={data} />
            </>
          )}
        </section>
        <Inspector page={data} onChanged={reload} />
      </div>
    </>
  );
}

function Branches({ tree }: { tree: LaneTree }) {
  const route = useRoute();
  const x = (lane: number) => 9 + Math.min(lane, 6) * 13;
  const rows = tree.nodes.filter((each) => each.node.kind === "step");
  const row = new Map(rows.map((each, index) => [each.node.node, index]));
  const lane = new Map(rows.map((each) => [each.node.node, each.lane]));
  const height = 30;
  const width = x(Math.min(tree.lanes - 1, 6)) + 10;
  return (
    <>
      <h2>
        Nodes {tree.forks > 0 && <span className="quiet">{tree.forks === 1 ? "1 fork" : `${tree.forks} forks`}</span>}
      </h2>
      <div className="tree">
        <svg width={width} height={rows.length * height} aria-hidden="true">
          {rows.map((each, index) => {
            const parent = each.node.parent === null ? undefined : row.get(each.node.parent);
            if (parent === undefined || each.node.parent === null) return null;
            const from = x(lane.get(each.node.parent) ?? 0);
            const to = x(each.lane);
            const top = parent * height + 15;
            const bottom = index * height + 15;
            return <path key={each.node.node} d={`M${from} ${top}V${bottom - 12}Q${from} ${bottom} ${to} ${bottom}`} className={each.onPath ? "on" : ""} />;
          })}
          {rows.map((each, index) => (
            <circle key={each.node.node} cx={x(each.lane)} cy={index * height + 15} r={each.node.preferred ? 5.5 : 4} className={`${each.onPath ? "on" : ""} ${each.node.tip ? "tip" : ""}`} />
          ))}
        </svg>
        <ol>
          {rows.map((each) => {
            const { node } = each;
            const notes = tree.nodes.filter((other) => other.node.kind !== "step" && other.node.parent === node.node).length;
            return (
              <li key={node.node} className={each.onPath ? "on" : ""}>
                {node.tip ? (
                  <Link to={withQuery(route, { node: node.preferred ? null : String(node.node), run: tree.runId })} title={`Show the branch that ends here: ${node.label}`}>
                    {visible(node.label)}
                  </Link>
                ) : (
                  <span title={node.label}>{visible(node.label)}</span>
                )}
                {node.cause === "non_tip_advance" && <span className="badge quiet">fork</span>}
                {node.preferred && <span className="badge complete">tip</span>}
                {node.blocked > 0 && <span className="badge blocked">{node.blocked}×</span>}
                {notes > 0 && <span className="badge quiet">{notes} noted</span>}
              </li>
            );
          })}
        </ol>
      </div>
      {tree.forks > 0 && <CompareTips tree={tree} />}
    </>
  );
}

function CompareTips({ tree }: { tree: LaneTree }) {
  const route = useRoute();
  const others = tree.nodes.filter((each) => each.node.tip && !each.node.preferred);
  const other = others.at(-1)?.node.node;
  const reference = route.path[1] ?? "";
  if (other === undefined) return null;
  const query = { left: reference, right: reference, leftRun: tree.runId, rightRun: tree.runId, leftNode: String(other), rightNode: String(tree.tip) };
  return (
    <p>
      <Link className="button small" to={address("compare", query)}>
        Compare the branches
      </Link>
    </p>
  );
}

function Step({ step }: { step: StoryStep }) {
  const isOpen = step.doneAt === null;
  return (
    <li className={`step ${step.kind} ${isOpen ? "open" : ""}`} id={`node-${step.node}`}>
      <header>
        <h3>{visible(step.title || step.id)}</h3>
        <span className="quiet">
          <code>{visible(step.id)}</code> · node {step.node}
          {step.doneAt !== null ? (
            <>
              {" "}
              · <Time at={step.doneAt} /> · {duration(step.doneAt - step.askedAt)}
            </>
          ) : (
            <>
              {" "}
              · waiting since <Time at={step.askedAt} />
            </>
          )}
        </span>
      </header>
      {step.prompt && (
        <details className="prompt" open={isOpen}>
          <summary>{step.kind === "decision" ? "Question" : "Prompt"}</summary>
          <Markdown text={step.prompt} />
        </details>
      )}
      {step.blocked.map((attempt, index) => (
        <div key={index} className="blocked-attempt">
          <p>
            <span className="badge blocked">Blocked</span> <Time at={attempt.at} />
          </p>
          <ul>
            {attempt.blockers.map((blocker, at) => (
              <li key={at}>
                <code>{blocker.code}</code> {visible(blocker.message)} <span className="quiet">{pointer(blocker.pointer)}</span>
              </li>
            ))}
          </ul>
          <Output output={attempt} />
        </div>
      ))}
      {step.handedIn && <Output output={step.handedIn} />}
      {step.noted.map((note, index) => (
        <div key={index} className="noted">
          <p className="quiet">
            Noted <Time at={note.at} />
          </p>
          <Output output={note} />
        </div>
      ))}
      {step.decisions.map((decision, index) => (
        <p key={index} className="decision">
          <span className="badge complete">{visible(decision.option || decision.how.replaceAll("_", " "))}</span>
          <span>
            {visible(decision.gate)}, by {decision.channel}
            {decision.client && ` (${visible(decision.client)})`}, <Time at={decision.at} />
          </span>
          {decision.note && <q>{visible(decision.note)}</q>}
        </p>
      ))}
      {step.marks.length > 0 && (
        <ul className="marks">
          {step.marks.map((mark, index) => (
            <li key={index} className={`${mark.kind} ${mark.weight}`}>
              {visible(mark.text)}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function pointer(value: Record<string, unknown> | object): string {
  const { kind, ...rest } = value as Record<string, unknown>;
  return `${String(kind ?? "").replaceAll("_", " ")}: ${Object.values(rest).join(", ")}`;
}

function Output({ output }: { output: HandedIn }) {
  return (
    <>
      {output.notes.map((text, index) => (
        <Markdown key={index} text={text} />
      ))}
      {output.artifacts.map((artifact, index) => (
        <Artifact key={index} artifact={artifact} />
      ))}
    </>
  );
}

function Timeline({ steps }: { steps: StoryStep[] }) {
  const ends = steps.map((step) => step.doneAt ?? step.askedAt);
  const from = Math.min(...steps.map((step) => step.askedAt));
  const total = Math.max(Math.max(...ends) - from, 1);
  const spent = (kinds: boolean) =>
    steps.filter((step) => (step.kind === "decision" || step.kind === "input") === kinds).reduce((sum, step) => sum + (step.doneAt ?? step.askedAt) - step.askedAt, 0);
  return (
    <figure className="timeline">
      <figcaption>
        <span className="key working" /> working {duration(spent(false))} <span className="key waiting" /> waiting for a person {duration(spent(true))}
      </figcaption>
      <table>
        <thead className="sr-only">
          <tr>
            <th scope="col">Step</th>
            <th scope="col">When</th>
            <th scope="col">Time</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => {
            const end = step.doneAt ?? step.askedAt;
            const isWaiting = step.kind === "decision" || step.kind === "input";
            return (
              <tr key={step.node}>
                <th scope="row" title={step.id}>
                  {visible(step.id)}
                </th>
                <td className="bar">
                  <div
                    className={isWaiting ? "waiting" : "working"}
                    style={{ marginLeft: `${((step.askedAt - from) / total) * 100}%`, width: `max(3px, ${((end - step.askedAt) / total) * 100}%)` }}
                  />
                </td>
                <td className="number">{step.doneAt === null ? "now" : duration(end - step.askedAt)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </figure>
  );
}

function PathGraph({ reference, sessionId, run, node }: { reference: string; sessionId: string; run: string; node: string | undefined }) {
  const { data, error } = usePage<RunGraph>(`sessions/${reference}/graph`, { run, node }, sessionId);
  if (error) return <ErrorBox error={error} />;
  return data ? <Graph graph={data.graph} visits={data.visits} current={data.current} /> : <Skeleton />;
}

function Events({ reference, sessionId }: { reference: string; sessionId: string }) {
  const { data, error } = usePage<EventsPage>(`sessions/${reference}/events`, {}, sessionId);
  const [older, setOlder] = useState<EventsPage[]>([]);
  const [text, setText] = useState("");
  useEffect(() => setOlder([]), [data]);
  const last = older.at(-1) ?? data;
  const rows = useMemo(() => {
    const all = [...(data?.events ?? []), ...older.flatMap((page) => page.events)];
    const wanted = text.toLowerCase();
    return wanted ? all.filter((row) => `${row.kind} ${row.summary}`.toLowerCase().includes(wanted)) : all;
  }, [data, older, text]);
  if (error && !data) return <ErrorBox error={error} />;
  if (!data || !last) return <Skeleton />;
  return (
    <>
      <div className="filters">
        <input type="search" aria-label="Filter events by kind or text" placeholder="Kind or text" value={text} onChange={(event) => setText(event.target.value)} />
        <span className="quiet">{data.total} events</span>
      </div>
      <ol className="events">
        {rows.map((row) => (
          <li key={row.index}>
            <details>
              <summary>
                <span className="number quiet">{row.index}</span> <code>{row.kind}</code> <span className="summary">{visible(row.summary)}</span> <Time at={row.at} />
              </summary>
              <Json value={row.event} />
            </details>
          </li>
        ))}
      </ol>
      {last.start > 0 && (
        <button type="button" className="button" onClick={() => void get<EventsPage>(`sessions/${reference}/events`, { before: String(last.start) }).then((page) => setOlder((now) => [...now, page]))}>
          Older events
        </button>
      )}
    </>
  );
}

function Inspector({ page, onChanged }: { page: SessionPage; onChanged: () => void }) {
  const { status } = page;
  const run = status.runs.find((each) => each.runId === page.runId);
  const [message, setMessage] = useState("");
  const [error, setError] = useState<ConsoleError | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const [pin, setPin] = useState("");
  const send = (name: string, body: unknown) =>
    act<ActionDone>(name, body).then(
      (done) => {
        setError(null);
        setMessage(done.message);
        onChanged();
      },
      (refused: unknown) => {
        if (!(refused instanceof Refused)) throw refused;
        setMessage("");
        setError(refused.error);
      },
    );
  return (
    <aside className="inspector" aria-label="Details and actions">
      <h2>Details</h2>
      <dl>
        {run && (
          <>
            <dt>Pending</dt>
            <dd>{run.pending.kind === "nothing" ? "nothing: complete" : visible(run.pending.title)}</dd>
            <dt>Gaps</dt>
            <dd>{run.gaps}</dd>
            <dt>Mode</dt>
            <dd>
              {run.mode}, {run.riskPolicy} risk
            </dd>
            <dt>Workflow hash</dt>
            <dd>
              <code className="truncate" title={run.workflowHash}>
                {run.workflowHash.slice(0, 19)}…
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
      <h2>Continue in a chat</h2>
      <p className="quiet">Paste this to your agent:</p>
      <div className="command">
        <code>Resume the workflow session {status.ref} and continue with it.</code>
        <CopyButton text={`Resume the workflow session ${status.ref} and continue with it.`} label="Copy resume sentence" />
      </div>
      <h2>Actions</h2>
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          const notes = new FormData(event.currentTarget).get("notes");
          void send("note", { sessionId: status.sessionId, notes }).then(() => form.current?.reset());
        }}
      >
        <label className="field">
          Session note
          <textarea name="notes" rows={2} required />
        </label>
        <button type="submit" className="button small">
          Add note
        </button>
      </form>
      {page.modes.length > 0 && (
        <div className="row">
          <label className="field grow">
            Mode of unfinished branches
            <select
              value={page.modes[0]?.mode ?? "guided"}
              onChange={(event) => void send("mode", { sessionId: status.sessionId, mode: event.target.value as ModeRequest["mode"], pin } satisfies ModeRequest)}
            >
              <option value="guided">guided: stop for everything</option>
              <option value="stop">stop: only for gates and inputs</option>
              <option value="never-stop">never-stop: record gaps instead</option>
            </select>
          </label>
          {error?.code.startsWith("PIN") && (
            <label className="field">
              PIN
              <input type="password" value={pin} onChange={(event) => setPin(event.target.value)} autoComplete="off" />
            </label>
          )}
        </div>
      )}
      <div className="buttons">
        <button type="button" className="button small" onClick={() => void send("keep", { sessionIds: [status.sessionId], keep: !status.keep })}>
          {status.keep ? "Keep no longer" : "Keep"}
        </button>
        <a className="button small" href={address(`sessions/${status.ref}/export.json`, { form: "json" })} download>
          Export bundle
        </a>
        <a className="button small" href={address(`sessions/${status.ref}/export.json`, { form: "md" })} download>
          Markdown
        </a>
        <button type="button" className="button small" onClick={() => window.print()}>
          Print
        </button>
        <CopyButton text={`interlock status ${status.ref}`} label="Copy CLI command">
          CLI command
        </CopyButton>
      </div>
      <p role="status">{message}</p>
      {error && <ErrorBox error={error} />}
    </aside>
  );
}
