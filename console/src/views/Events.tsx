import { useEffect, useState } from "react";
import { get, usePage } from "../api";
import { visible } from "../markdown";
import { go, useRoute, withQuery } from "../router";
import type { EventRow, EventsPage } from "../types";
import { Empty, ErrorBox, Json, Skeleton, Time } from "../ui";

/** The log of a session, filtered by the server; the filters are in the address. */
export function Events({ reference, sessionId }: { reference: string; sessionId: string }) {
  const route = useRoute();
  const kind = route.query.get("kind") ?? "";
  const text = route.query.get("q") ?? "";
  const path = `sessions/${reference}/events`;
  const { data, error } = usePage<EventsPage>(path, { kind, q: text }, sessionId);
  const [older, setOlder] = useState<EventsPage[]>([]);
  const [typed, setTyped] = useState(text);
  useEffect(() => setOlder([]), [data]);
  useEffect(() => {
    if (typed === text) return;
    const timer = window.setTimeout(() => go(withQuery(route, { q: typed }), true), 250);
    return () => window.clearTimeout(timer);
  }, [typed, text, route]);
  const last = older.at(-1) ?? data;
  const rows = [...(data?.events ?? []), ...older.flatMap((page) => page.events)];
  return (
    <>
      <div className="filters" role="search" aria-label="Filter the events">
        <select aria-label="Kind of event" value={kind} onChange={(event) => go(withQuery(route, { kind: event.target.value }), true)}>
          <option value="">All kinds</option>
          {data?.kinds.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <input type="search" aria-label="Text of the event" placeholder="Kind or text" value={typed} onChange={(event) => setTyped(event.target.value)} />
        {data && <span className="quiet">{kind || text ? `${rows.length} shown of ${data.total}` : `${data.total} events`}</span>}
      </div>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton />}
      {data && rows.length === 0 && last?.start === 0 && <Empty title="No event matches" />}
      {rows.length > 0 && (
        <ol className="events" aria-label="Events, newest first">
          {rows.map((row) => (
            <Row key={row.index} row={row} />
          ))}
        </ol>
      )}
      {last && last.start > 0 && (
        <button type="button" className="button" onClick={() => void get<EventsPage>(path, { kind, q: text, before: String(last.start) }).then((page) => setOlder((now) => [...now, page]))}>
          Older events
        </button>
      )}
    </>
  );
}

/** One event; its JSON is drawn when somebody opens it. */
function Row({ row }: { row: EventRow }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span className="number quiet">{row.index}</span> <code>{row.kind}</code> <span className="summary">{visible(row.summary)}</span> <Time at={row.at} />
        </summary>
        {isOpen && <Json value={row.event} />}
      </details>
    </li>
  );
}
