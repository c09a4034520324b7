import { useCallback, useEffect, useRef, useState } from "react";
import { act, address, get, Refused, useAct, usePage } from "../api";
import { useCommands } from "../commands";
import { visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { ActionDone, RemovalPage, RunLine, RunPoint, RunsChanged, RunsPage, SavedView, WorkflowsPage } from "../types";
import { Dialog, duration, Empty, ErrorBox, Icon, Skeleton, StatusBadge, statusLabel, Time } from "../ui";
import { isTyping } from "./Inbox";
import "./runs.css";

const STATUSES = ["waiting", "in_progress", "blocked", "stale", "complete", "complete_with_gaps", "abandoned"];
const TIMES: [string, string, string][] = [
  ["1h", "", "Active in the last hour"],
  ["24h", "", "Active in the last 24 hours"],
  ["7d", "", "Active in the last 7 days"],
  ["30d", "", "Active in the last 30 days"],
  ["", "7d", "Idle for 7 days"],
  ["", "30d", "Idle for 30 days"],
  ["", "90d", "Idle for 90 days"],
];
const FILTERS = ["status", "workflow", "project", "active", "idle", "q"] as const;

export function Runs() {
  const route = useRoute();
  const { query } = route;
  const wanted = Object.fromEntries([...FILTERS, "offset"].map((name) => [name, query.get(name) ?? ""]));
  const { data, error, reload } = usePage<RunsPage>("runs", wanted);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const isFiltered = FILTERS.some((name) => wanted[name]);
  const filters = new URLSearchParams([...query].filter(([name]) => name !== "offset")).toString();
  useEffect(() => setSelected(new Set()), [filters]);
  const at = Number(wanted.offset) || 0;
  const moveTo = useCallback((step: number) => {
    const links = [...document.querySelectorAll<HTMLAnchorElement>(".runs tbody th a")];
    const now = links.findIndex((link) => link.closest("tr")?.contains(document.activeElement));
    links[Math.min(Math.max(now + step, 0), links.length - 1)]?.focus();
  }, []);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      if (event.key === "j") moveTo(1);
      else if (event.key === "k") moveTo(-1);
      else if (event.key === "x") document.activeElement?.closest("tr")?.querySelector<HTMLInputElement>("input[type=checkbox]")?.click();
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [moveTo]);
  return (
    <>
      <header className="page-head with-actions">
        <div>
          <h1>Runs</h1>
          <p className="quiet">Every session of this store, newest activity first.</p>
        </div>
        <ImportButton />
      </header>
      {data && <Views views={data.views} filters={filters} isFiltered={isFiltered} onChanged={reload} />}
      <Filters projects={data?.projects ?? []} />
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
      {data?.leftOut && <p className="quiet">Some of the newest work was not searched; search again in a few seconds.</p>}
      {data && data.lines.length > 0 && (
        <>
          <Scatter points={data.points} />
          <Bulk
            lines={data.lines.filter((line) => selected.has(line.sessionId))}
            onChanged={reload}
            onSelectAll={() => setSelected(new Set(data.lines.map((line) => line.sessionId)))}
            onClear={() => setSelected(new Set())}
          />
          <RunTable lines={data.lines} selected={selected} onSelect={setSelected} />
        </>
      )}
      {data && (at > 0 || data.more) && (
        <nav className="pager" aria-label="Pages of the list">
          {at > 0 ? <Link to={withQuery(route, { offset: at > data.limit ? String(at - data.limit) : null })}>Newer</Link> : <span />}
          <span className="quiet">
            {at + 1} to {at + data.lines.length}
          </span>
          {data.more ? <Link to={withQuery(route, { offset: String(at + data.limit) })}>Older</Link> : <span />}
        </nav>
      )}
    </>
  );
}

function Filters({ projects }: { projects: string[] }) {
  const route = useRoute();
  const { query } = route;
  const workflows = usePage<WorkflowsPage>("workflows", {}, "");
  const [status, workflow, project, text] = ["status", "workflow", "project", "q"].map((name) => query.get(name) ?? "") as [string, string, string, string];
  const time = `${query.get("active") ?? ""}/${query.get("idle") ?? ""}`;
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed === text) return;
    const timer = window.setTimeout(() => go(withQuery(route, { q: typed, offset: null }), true), 250);
    return () => window.clearTimeout(timer);
  }, [typed, text, route]);
  const choose = (changes: Record<string, string | null>) => go(withQuery(route, { ...changes, offset: null }));
  useCommands(STATUSES.map((each) => ({ label: `Filter: ${statusLabel(each)}`, hint: "this list", run: () => choose({ status: each }) })));
  const listed = workflows.data?.workflows.map((each) => each.id) ?? [];
  return (
    <div className="filters" role="search" aria-label="Filter the runs">
      <nav className="segments" aria-label="Status">
        {["", ...STATUSES].map((value) => (
          <Link key={value} to={withQuery(route, { status: value, offset: null })} aria-current={status === value ? "true" : undefined}>
            {value ? statusLabel(value) : "All"}
          </Link>
        ))}
      </nav>
      <input type="search" aria-label="Filter by text" placeholder="Title, note or id" value={typed} onChange={(event) => setTyped(event.target.value)} />
      <select aria-label="Workflow" value={workflow} onChange={(event) => choose({ workflow: event.target.value })}>
        <option value="">All workflows</option>
        {[...new Set([...listed, ...(workflow ? [workflow] : [])])].map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <select aria-label="Project" value={project} onChange={(event) => choose({ project: event.target.value })}>
        <option value="">All projects</option>
        {[...new Set([...projects, ...(project ? [project] : [])])].map((each) => (
          <option key={each} value={each} title={each}>
            {lastPart(each)}
          </option>
        ))}
      </select>
      <select
        aria-label="Time"
        value={time}
        onChange={(event) => {
          const [active = "", idle = ""] = event.target.value.split("/");
          choose({ active, idle });
        }}
      >
        <option value="/">Any time</option>
        {TIMES.some(([active, idle]) => `${active}/${idle}` === time) || time === "/" ? null : <option value={time}>{time.replace("/", " ")}</option>}
        {TIMES.map(([active, idle, label]) => (
          <option key={label} value={`${active}/${idle}`}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

const lastPart = (path: string): string => visible(path.split(/[\\/]/).filter(Boolean).at(-1) ?? path);

function Views({ views, filters, isFiltered, onChanged }: { views: SavedView[]; filters: string; isFiltered: boolean; onChanged: () => void }) {
  const [isNaming, setNaming] = useState(false);
  const { send, error } = useAct();
  const current = views.find((each) => each.query === filters);
  const save = (name: string) =>
    send<ActionDone>("view", { name, query: filters }, (done) => done.message).then((isDone) => {
      if (!isDone) return;
      setNaming(false);
      onChanged();
    });
  useCommands([
    ...views.map((view) => ({ label: `View: ${view.name}`, hint: "saved view", run: () => go(`/console/runs?${view.query}`) })),
    ...(isFiltered ? [{ label: "Save this view", hint: "action", run: () => setNaming(true) }] : []),
  ]);
  if (views.length === 0 && !isFiltered) return null;
  return (
    <div className="views" role="group" aria-label="Saved views">
      {views.map((view) => (
        <span key={view.name} className={view === current ? "view current" : "view"}>
          <Link to={`/console/runs?${view.query}`} aria-current={view === current ? "true" : undefined}>
            {visible(view.name)}
          </Link>
          <button type="button" aria-label={`Remove view ${view.name}`} onClick={() => void send<ActionDone>("view", { name: view.name }, (done) => done.message).then(onChanged)}>
            ×
          </button>
        </span>
      ))}
      {isFiltered && !current && !isNaming && (
        <button type="button" className="button small" onClick={() => setNaming(true)}>
          Save this view
        </button>
      )}
      {isNaming && (
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            const name = new FormData(event.currentTarget).get("name");
            if (typeof name === "string") void save(name);
          }}
        >
          <input name="name" aria-label="Name of the view" placeholder="Name of the view" maxLength={60} required autoFocus autoComplete="off" onKeyDown={(event) => event.key === "Escape" && setNaming(false)} />
          <button type="submit" className="button small primary">
            Save
          </button>
        </form>
      )}
      {error && <ErrorBox error={error} />}
    </div>
  );
}

interface TableProps {
  lines: RunLine[];
  selected?: ReadonlySet<string>;
  onSelect?: (selected: ReadonlySet<string>) => void;
}

export function RunTable({ lines, selected, onSelect }: TableProps) {
  const chosen = lines.filter((line) => selected?.has(line.sessionId)).length;
  const toggle = (line: RunLine) => {
    const next = new Set(selected);
    if (!next.delete(line.sessionId)) next.add(line.sessionId);
    onSelect?.(next);
  };
  return (
    <div className="table-wrap">
      <table className="runs">
        <thead>
          <tr>
            {onSelect && (
              <th scope="col" className="choose">
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  checked={chosen === lines.length}
                  ref={(box) => {
                    if (box) box.indeterminate = chosen > 0 && chosen < lines.length;
                  }}
                  onChange={() => onSelect(new Set(chosen === lines.length ? [] : lines.map((line) => line.sessionId)))}
                />
              </th>
            )}
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
            <tr key={line.sessionId} className={selected?.has(line.sessionId) ? "selected" : undefined}>
              {onSelect && (
                <td className="choose">
                  <input type="checkbox" aria-label={`Select ${line.title}`} checked={selected?.has(line.sessionId) ?? false} onChange={() => toggle(line)} />
                </td>
              )}
              <th scope="row">
                <Link to={`/console/sessions/${line.ref}`}>{visible(line.title)}</Link>
                <span className="quiet">
                  <code>{line.ref}</code>
                  {line.project && <span title={line.project}> · {lastPart(line.project)}</span>}
                  {line.runs > 1 && ` · ${line.runs} runs`}
                  {line.keep && " · kept"}
                </span>
              </th>
              <td data-label="Status">
                <StatusBadge status={line.status} />
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

const sessions = (count: number): string => (count === 1 ? "1 session" : `${count} sessions`);

function Bulk({ lines, onChanged, onSelectAll, onClear }: { lines: RunLine[]; onChanged: () => void; onSelectAll: () => void; onClear: () => void }) {
  const { send, message, error } = useAct();
  const [isDeleting, setDeleting] = useState(false);
  const ids = lines.map((line) => line.sessionId);
  const keep = (keep: boolean) => void send<RunsChanged>("keep", { sessionIds: ids, keep }, (done) => done.message).then(onChanged);
  const download = () => window.location.assign(address("runs/export.json", { ids: ids.join(",") }));
  const [left, right] = lines;
  const comparison = lines.length === 2 && left && right ? address("compare", { left: left.ref, right: right.ref }) : null;
  useCommands(
    lines.length
      ? [
          { label: `Keep ${sessions(ids.length)}`, hint: "selected", run: () => keep(true) },
          { label: `Export ${sessions(ids.length)}`, hint: "selected", run: download },
          { label: `Delete ${sessions(ids.length)}`, hint: "selected", run: () => setDeleting(true) },
          ...(comparison ? [{ label: "Compare the two", hint: "selected", run: () => go(comparison) }] : []),
        ]
      : [],
  );
  return (
    <>
      {lines.length > 0 && (
        <div className="bulk" role="toolbar" aria-label="Selected sessions">
          <strong>{lines.length} selected</strong>
          <button type="button" className="button small" onClick={() => keep(true)}>
            Keep
          </button>
          {lines.some((line) => line.keep) && (
            <button type="button" className="button small" onClick={() => keep(false)}>
              Keep no longer
            </button>
          )}
          <button type="button" className="button small" onClick={download}>
            Export
          </button>
          {comparison && (
            <Link className="button small" to={comparison}>
              Compare
            </Link>
          )}
          <button type="button" className="button small danger" onClick={() => setDeleting(true)}>
            Delete…
          </button>
          <button type="button" className="button small plain" onClick={onSelectAll}>
            All on this page
          </button>
          <button type="button" className="button small plain" onClick={onClear}>
            None
          </button>
        </div>
      )}
      <p role="status" className={message ? "done" : "sr-only"}>
        {message}
      </p>
      {error && <ErrorBox error={error} />}
      {isDeleting && (
        <DeleteDialog
          ids={ids}
          onClose={() => setDeleting(false)}
          onDelete={(request) =>
            void send<RunsChanged>("remove", request, (done) => done.message).then(() => {
              setDeleting(false);
              onClear();
              onChanged();
            })
          }
        />
      )}
    </>
  );
}

interface DeleteProps {
  ids: string[];
  onClose: () => void;
  onDelete: (request: { sessionIds: string[]; at: number; waiting: boolean }) => void;
}

const OUTCOMES: Record<string, string> = { deleted: "is deleted", waiting: "waits for you at a gate", kept: "stays: marked to be kept" };

/** Show what deleting would do before anything is done. */
function DeleteDialog({ ids, onClose, onDelete }: DeleteProps) {
  const [preview, setPreview] = useState<RemovalPage | null>(null);
  const [withWaiting, setWithWaiting] = useState(false);
  const wanted = useRef(ids.join(","));
  useEffect(() => {
    void get<RemovalPage>("runs/removal", { ids: wanted.current }).then(setPreview, onClose);
  }, []);
  const lines = preview?.lines ?? [];
  const waiting = lines.filter((line) => line.outcome === "waiting");
  const going = lines.filter((line) => line.outcome === "deleted" || (withWaiting && line.outcome === "waiting"));
  return (
    <Dialog title="Delete sessions" className="delete" onClose={onClose}>
      {!preview && <Skeleton rows={3} />}
      {preview && (
        <>
          <p>Their events, notes and artifacts are removed for good. Export them first if you may need them.</p>
          <ul className="removal">
            {lines.map((line) => {
              const isGoing = going.includes(line);
              return (
                <li key={line.sessionId}>
                  <span className="truncate" title={line.title}>
                    {visible(line.title)}
                  </span>
                  <span className={isGoing ? "outcome going" : "outcome"}>{isGoing ? "is deleted" : OUTCOMES[line.outcome]}</span>
                </li>
              );
            })}
          </ul>
          {waiting.length > 0 && (
            <label className="check">
              <input type="checkbox" checked={withWaiting} onChange={(event) => setWithWaiting(event.target.checked)} /> Also delete {waiting.length === 1 ? "the one that waits" : `the ${waiting.length} that wait`} for
              you
            </label>
          )}
          <div className="buttons">
            <button type="button" className="button danger" disabled={going.length === 0} onClick={() => onDelete({ sessionIds: going.map((line) => line.sessionId), at: preview.at, waiting: withWaiting })}>
              Delete {sessions(going.length)}
            </button>
            <button type="button" className="button" onClick={onClose}>
              Cancel
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}

/** Import bundles from files; the session that came last is opened. */
function ImportButton() {
  const file = useRef<HTMLInputElement>(null);
  const [error, setError] = useState<Refused | null>(null);
  const choose = () => file.current?.click();
  useCommands([{ label: "Import sessions", hint: "action", run: choose }]);
  const read = async (files: File[]) => {
    let done: ActionDone | null = null;
    try {
      for (const each of files) done = await act<ActionDone>("import", await each.text());
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      setError(refused);
      return;
    }
    if (done) go(`/console/sessions/${done.sessionId}`);
  };
  return (
    <div className="import">
      <input ref={file} type="file" accept=".json,application/json" multiple hidden onChange={(event) => void read([...(event.target.files ?? [])])} />
      <button type="button" className="button" onClick={choose}>
        <Icon name="inbox" /> Import
      </button>
      {error && <ErrorBox error={error.error} />}
    </div>
  );
}

const MARKS: [number, string][] = [
  [1000, "1 s"],
  [60_000, "1 min"],
  [3_600_000, "1 h"],
  [86_400_000, "1 d"],
  [2_592_000_000, "30 d"],
];
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** When sessions began and how long they took. The table below has the same facts for those who cannot see it. */
function Scatter({ points }: { points: RunPoint[] }) {
  if (points.length < 3) return null;
  const starts = points.map((point) => point.startedAt);
  const from = Math.min(...starts);
  const to = Math.max(...starts, from + 60_000);
  const longest = Math.max(...points.map((point) => point.milliseconds), 60_000);
  const height = (ms: number) => (Math.log1p(ms / 1000) / Math.log1p(longest / 1000)) * 100;
  const across = (at: number) => ((at - from) / (to - from)) * 100;
  const label = (at: number) => (to - from > 2 * 86_400_000 ? DAY : CLOCK).format(at);
  const statuses = [...new Set(points.map((point) => point.status))].sort((a, b) => STATUSES.indexOf(a) - STATUSES.indexOf(b));
  return (
    <figure className="scatter">
      <figcaption>
        <span className="quiet">Start and duration of the newest {points.length}</span>
        {statuses.map((status) => (
          <span key={status} className="key">
            <span className={`dot ${status}`} aria-hidden="true" /> {statusLabel(status)}
          </span>
        ))}
      </figcaption>
      <div className="plot" aria-hidden="true">
        {MARKS.filter(([ms]) => ms <= longest).map(([ms, text]) => (
          <div key={text} className="mark" style={{ bottom: `${height(ms)}%` }}>
            <span>{text}</span>
          </div>
        ))}
        {points.map((point) => (
          <Link
            key={point.sessionId}
            to={`/console/sessions/${point.ref}`}
            tabIndex={-1}
            className={`dot ${point.status}`}
            title={`${point.title}: ${statusLabel(point.status)}, ${duration(point.milliseconds)}`}
            style={{ left: `${across(point.startedAt)}%`, bottom: `${height(point.milliseconds)}%` }}
          />
        ))}
      </div>
      <div className="axis quiet" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1]
          .map((share) => label(from + (to - from) * share))
          .map((text, index, all) => (
            <span key={index}>{text === all[index - 1] ? "" : text}</span>
          ))}
      </div>
    </figure>
  );
}
