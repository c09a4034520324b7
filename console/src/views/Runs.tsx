import { useEffect, useState } from "react";
import { usePage } from "../api";
import { visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { RunLine, RunsPage, WorkflowsPage } from "../types";
import { Empty, ErrorBox, Skeleton, StatusBadge, Time, duration } from "../ui";

const FILTERS: [string, string][] = [
  ["", "All"],
  ["waiting", "Waiting for you"],
  ["in_progress", "Running"],
  ["blocked", "Blocked"],
  ["complete", "Complete"],
  ["complete_with_gaps", "With gaps"],
];

export function Runs() {
  const route = useRoute();
  const { query } = route;
  const [status, workflow, text, offset] = ["status", "workflow", "q", "offset"].map((name) => query.get(name) ?? "") as [string, string, string, string];
  const { data, error } = usePage<RunsPage>("runs", { status, workflow, q: text, offset });
  const workflows = usePage<WorkflowsPage>("workflows", {}, "");
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed === text) return;
    const timer = window.setTimeout(() => go(withQuery(route, { q: typed, offset: null }), true), 250);
    return () => window.clearTimeout(timer);
  }, [typed, text, route]);
  const isFiltered = Boolean(status || workflow || text);
  const at = Number(offset) || 0;
  return (
    <>
      <header className="page-head">
        <h1>Runs</h1>
        <p className="quiet">Every session of this store, newest activity first.</p>
      </header>
      <div className="filters">
        <nav className="segments" aria-label="Status">
          {FILTERS.map(([value, label]) => (
            <Link key={value} to={withQuery(route, { status: value, offset: null })} aria-current={status === value ? "true" : undefined}>
              {label}
            </Link>
          ))}
        </nav>
        <select aria-label="Workflow" value={workflow} onChange={(event) => go(withQuery(route, { workflow: event.target.value, offset: null }))}>
          <option value="">All workflows</option>
          {workflows.data?.workflows.map((each) => (
            <option key={each.id} value={each.id}>
              {each.id}
            </option>
          ))}
        </select>
        <input type="search" aria-label="Filter by text" placeholder="Title, note or id" value={typed} onChange={(event) => setTyped(event.target.value)} />
      </div>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={10} />}
      {data && data.lines.length === 0 && !isFiltered && (
        <Empty title="No sessions yet" command="interlock install claude-code">
          <p>Connect an agent, then ask it to start a workflow. Its runs appear here.</p>
        </Empty>
      )}
      {data && data.lines.length === 0 && isFiltered && (
        <Empty title="No session matches">
          <p>
            <Link to="/console/runs">Clear the filters</Link>
          </p>
        </Empty>
      )}
      {data && data.lines.length > 0 && <Scatter lines={data.lines} />}
      {data && data.lines.length > 0 && <RunTable lines={data.lines} />}
      {data && (at > 0 || data.more) && (
        <nav className="pager" aria-label="Pages">
          {at > 0 ? <Link to={withQuery(route, { offset: String(Math.max(at - data.limit, 0)) || null })}>Newer</Link> : <span />}
          <span className="quiet">
            {at + 1} to {at + data.lines.length}
          </span>
          {data.more ? <Link to={withQuery(route, { offset: String(at + data.limit) })}>Older</Link> : <span />}
        </nav>
      )}
    </>
  );
}

export function RunTable({ lines }: { lines: RunLine[] }) {
  return (
    <div className="table-wrap">
      <table className="runs">
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col">Status</th>
            <th scope="col">Workflow</th>
            <th scope="col">Branch</th>
            <th scope="col" className="number">
              Steps
            </th>
            <th scope="col" className="number">
              Gaps
            </th>
            <th scope="col">Activity</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.sessionId}>
              <th scope="row">
                <Link to={`/console/sessions/${line.ref}`}>{visible(line.title)}</Link>
                <span className="quiet">
                  <code>{line.ref}</code>
                  {line.runs > 1 && ` · ${line.runs} runs`}
                  {line.keep && " · kept"}
                </span>
              </th>
              <td data-label="Status">
                <StatusBadge status={line.status} awaiting={line.awaiting} />
              </td>
              <td data-label="Workflow">
                <code>{line.workflowId || "–"}</code>
              </td>
              <td data-label="Branch" className="truncate" title={line.branch}>
                {visible(line.branch) || "–"}
              </td>
              <td data-label="Steps" className="number">
                {line.steps}
              </td>
              <td data-label="Gaps" className="number">
                {line.gaps || "–"}
              </td>
              <td data-label="Activity">
                <Time at={line.updatedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Runs over time by duration. The table below has the same facts for those who cannot see it. */
function Scatter({ lines }: { lines: RunLine[] }) {
  if (lines.length < 3) return null;
  const width = 1000;
  const height = 96;
  const starts = lines.map((line) => line.createdAt);
  const from = Math.min(...starts);
  const to = Math.max(...starts, from + 1);
  const longest = Math.max(...lines.map((line) => line.updatedAt - line.createdAt), 1);
  const scale = (ms: number) => Math.log1p(ms / 1000) / Math.log1p(longest / 1000);
  return (
    <figure className="scatter">
      <figcaption className="quiet">When each session began, and how long it took (longest {duration(longest)})</figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label="Sessions by start and duration" preserveAspectRatio="none">
        <line x1="0" x2={width} y1={height - 8} y2={height - 8} />
        {lines.map((line) => {
          const look = line.awaiting && line.status === "in_progress" ? "waiting" : line.status;
          return (
            <ellipse
              key={line.sessionId}
              className={look}
              cx={10 + ((line.createdAt - from) / (to - from)) * (width - 20)}
              cy={height - 12 - scale(line.updatedAt - line.createdAt) * (height - 24)}
              rx="5"
              ry="5"
            >
              <title>{`${line.title}: ${duration(line.updatedAt - line.createdAt)}`}</title>
            </ellipse>
          );
        })}
      </svg>
    </figure>
  );
}
