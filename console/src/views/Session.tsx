import { useEffect, useRef, useState } from "react";
import { address, useAct, usePage } from "../api";
import { Artifacts } from "../artifacts";
import { useCommands } from "../commands";
import { Markdown, visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { ActionDone, RunGraph, SessionPage } from "../types";
import { CopyButton, Empty, ErrorBox, Json, Skeleton, StatusBadge, Time } from "../ui";
import { Events } from "./Events";
import { Graph } from "./Graph";
import { isTyping } from "./Inbox";
import { ForkDialog, Inspector } from "./Inspector";
import { Story } from "./Story";
import { SessionLanes, Timeline } from "./Timeline";
import { Branches } from "./Tree";
import "./session.css";

const TABS = ["story", "artifacts", "timeline", "graph", "events", "raw"] as const;

export function Session({ reference }: { reference: string }) {
  const route = useRoute();
  const run = route.query.get("run") ?? undefined;
  const node = route.query.get("node") ?? undefined;
  const at = route.query.get("at");
  const selected = at !== null && /^\d{1,9}$/.test(at) ? Number(at) : null;
  const tab = TABS.find((each) => each === route.query.get("tab")) ?? "story";
  const [sessionId, setSessionId] = useState<string | undefined>(undefined);
  const [forking, setForking] = useState<number | null>(null);
  const { data, error, reload } = usePage<SessionPage>(`sessions/${encodeURIComponent(reference)}`, { run, node }, sessionId);
  useEffect(() => setSessionId(data?.status.sessionId), [data]);
  useCommands(TABS.map((each) => ({ label: `Tab: ${each}`, hint: "this session", run: () => go(withQuery(route, { tab: each === "story" ? null : each })) })));
  const steps = data?.story?.steps;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const way = event.key === "j" || event.key === "]" ? 1 : -1;
      if (event.key === "j" || event.key === "k") {
        const now = steps?.findIndex((step) => step.node === selected) ?? -1;
        const next = steps?.[Math.min(Math.max(now + way, 0), steps.length - 1)];
        if (next) go(withQuery(route, { at: String(next.node) }), true);
      } else if (event.key === "[" || event.key === "]") {
        const next = TABS[(TABS.indexOf(tab) + way + TABS.length) % TABS.length];
        go(withQuery(route, { tab: next === "story" ? null : (next ?? null) }), true);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [steps, selected, tab, route]);
  if (error && !data)
    return (
      <>
        <header className="page-head">
          <p className="crumbs">
            <Link to="/console/runs">Runs</Link> / <code>{visible(reference)}</code>
          </p>
          <h1>Session</h1>
        </header>
        <ErrorBox error={error} />
      </>
    );
  if (!data) return <Skeleton rows={8} />;
  const { status, story } = data;
  const shownRun = data.runs.find((each) => each.runId === data.runId);
  const tree = data.trees.find((each) => each.runId === data.runId);
  const trust = `/console/workflows/${encodeURIComponent(shownRun?.workflowId ?? "")}/checks?session=${status.ref}`;
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
          {status.keep && <span className="quiet">kept</span>}
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
        {data.untrusted.length > 0 && (
          <p className="notice">
            The server does not run {data.untrusted.length === 1 ? "the check" : "the checks"} <strong>{visible(data.untrusted.join(", "))}</strong> of this run: nobody has trusted {data.untrusted.length === 1 ? "it" : "them"} as {data.untrusted.length === 1 ? "it is" : "they are"} now.{" "}
            <Link to={trust}>See what would run</Link>
          </p>
        )}
      </header>
      {error && <ErrorBox error={error} />}
      <div className="session">
        <aside className="side" aria-label="Runs and branches">
          <h2>Runs</h2>
          <ul className="run-list">
            {data.runs.map((each) => (
              <li key={each.runId}>
                <Link to={withQuery(route, { run: each.runId, node: null, at: null })} aria-current={each.runId === data.runId ? "true" : undefined}>
                  <span className="title">{visible(each.title)}</span>
                  <code>{each.workflowId}</code>
                  <span>
                    <StatusBadge status={each.status} /> <span className="quiet">{each.branches === 1 ? "1 branch" : `${each.branches} branches`}</span>
                  </span>
                </Link>
              </li>
            ))}
          </ul>
          {tree && <Branches tree={tree} selected={selected} />}
        </aside>
        <section className="centre" aria-label="Run">
          <SessionNotes page={data} onChanged={reload} />
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
          {story && tab === "story" && <Story story={story} forks={data.forks} selected={selected} onFork={setForking} />}
          {story && tab === "artifacts" && <Artifacts reference={status.ref} sessionId={status.sessionId} run={data.runId} node={node} />}
          {tab === "timeline" && (
            <div className="timelines">
              <SessionLanes lanes={data.lanes} shown={data.runId} />
              {data.timeline && <Timeline timeline={data.timeline} />}
            </div>
          )}
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
        <Inspector page={data} selected={selected} onChanged={reload} onFork={setForking} />
      </div>
      {forking !== null && <ForkDialog sessionId={status.sessionId} node={forking} onClose={() => setForking(null)} />}
    </>
  );
}

/** What concerns the session as a whole, between its runs. */
function SessionNotes({ page, onChanged }: { page: SessionPage; onChanged: () => void }) {
  const [isWriting, setWriting] = useState(false);
  const { send, error } = useAct();
  const form = useRef<HTMLFormElement>(null);
  useCommands([{ label: "Add a session note", hint: "action", run: () => setWriting(true) }]);
  return (
    <section className="session-notes" aria-label="Session notes">
      <header>
        <h2>Session notes</h2>
        {!isWriting && (
          <button type="button" className="button small" onClick={() => setWriting(true)}>
            Add a note
          </button>
        )}
      </header>
      {page.notes.length === 0 && !isWriting && <p className="quiet">None yet. They belong to no run; agents see them when they resume.</p>}
      {page.notes.map((text, index) => (
        <Markdown key={index} text={text} />
      ))}
      {isWriting && (
        <form
          ref={form}
          onSubmit={(event) => {
            event.preventDefault();
            const notes = new FormData(event.currentTarget).get("notes");
            void send<ActionDone>("note", { sessionId: page.status.sessionId, notes }, (done) => done.message).then((isDone) => {
              if (!isDone) return;
              setWriting(false);
              onChanged();
            });
          }}
        >
          <textarea name="notes" aria-label="Session note" rows={3} required autoFocus onKeyDown={(event) => event.key === "Escape" && setWriting(false)} />
          <div className="buttons">
            <button type="submit" className="button small primary">
              Save note
            </button>
            <button type="button" className="button small" onClick={() => setWriting(false)}>
              Cancel
            </button>
          </div>
        </form>
      )}
      {error && <ErrorBox error={error} />}
    </section>
  );
}

function PathGraph({ reference, sessionId, run, node }: { reference: string; sessionId: string; run: string; node: string | undefined }) {
  const { data, error } = usePage<RunGraph>(`sessions/${reference}/graph`, { run, node }, sessionId);
  if (error) return <ErrorBox error={error} />;
  return data ? <Graph graph={data.graph} visits={data.visits} current={data.current} taken={data.taken} /> : <Skeleton />;
}
