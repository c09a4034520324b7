import { visible } from "../markdown";
import { Link, useRoute, withQuery } from "../router";
import type { RunTimeline, SessionLane, TimelineBar } from "../types";
import { duration, statusLabel } from "../ui";

const WHEN = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const SECONDS = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** The runs of a session beside each other: what happened to the session as a whole is a lane of its own. */
export function SessionLanes({ lanes, shown }: { lanes: SessionLane[]; shown: string }) {
  const route = useRoute();
  const from = Math.min(...lanes.map((lane) => lane.start));
  const to = Math.max(...lanes.map((lane) => lane.end), from + 1);
  const share = (at: number) => `${(Math.min(Math.max(at - from, 0), to - from) / (to - from)) * 100}%`;
  return (
    <figure className="lanes" aria-label="Timeline of the session">
      <figcaption>
        <strong>This session</strong> <span className="quiet">one lane for each run</span>
      </figcaption>
      <ol>
        {lanes.map((lane) => (
          <li key={lane.runId || "session"} className={lane.runId ? "" : "whole"}>
            <span className="name" title={lane.name}>
              {visible(lane.name)}
            </span>
            <div className="track">
              {lanes.slice(1).map((other) => (
                <span key={other.runId} className="boundary" style={{ left: share(other.start) }} aria-hidden="true" />
              ))}
              {lane.runId && (
                <Link
                  to={withQuery(route, { run: lane.runId, node: null, at: null })}
                  className={`span ${lane.status} ${lane.runId === shown ? "shown" : ""}`}
                  aria-current={lane.runId === shown ? "true" : undefined}
                  aria-label={`${lane.name}: ${statusLabel(lane.status)}, ${duration(lane.end - lane.start)}`}
                  title={`${statusLabel(lane.status)}, ${duration(lane.end - lane.start)}`}
                  style={{ left: share(lane.start), width: `max(6px, calc(${share(lane.end)} - ${share(lane.start)}))` }}
                />
              )}
              {lane.marks.map((mark, index) => (
                <span key={index} className="point" role="img" aria-label={mark.text} title={`${WHEN.format(mark.at)}: ${mark.text}`} style={{ left: share(mark.at) }} />
              ))}
            </div>
            <span className="quiet number">{lane.runId ? duration(lane.end - lane.start) : ""}</span>
          </li>
        ))}
        <Ends from={from} to={to} />
      </ol>
    </figure>
  );
}

/** One branch in lanes by activity or loop; the time that people took is drawn apart from the agent's. */
export function Timeline({ timeline }: { timeline: RunTimeline }) {
  const route = useRoute();
  const total = Math.max(timeline.end - timeline.start, 1);
  const share = (ms: number) => `${(ms / total) * 100}%`;
  const says = (bar: TimelineBar) => `${bar.title || bar.id}: ${bar.open ? "open, " : ""}${duration(bar.end - bar.start)}, ${bar.waiting ? "waiting for a person" : "working"}`;
  return (
    <figure className="lanes" aria-label="Timeline of the run">
      <figcaption>
        <strong>This run</strong>
        <span>
          <span className="key working" /> working {duration(timeline.working)}
        </span>
        <span>
          <span className="key waiting" /> waiting for a person {duration(timeline.waiting)}
        </span>
      </figcaption>
      <ol>
        {timeline.lanes.map((lane, index) => (
          <li key={index}>
            <span className="name" title={`${lane.kind} ${lane.name}`}>
              {lane.kind === "loop" && <span className="badge quiet">loop</span>} {visible(lane.name)}
            </span>
            <div className="track">
              {lane.bars.map((bar) => (
                <Link
                  key={bar.node}
                  to={withQuery(route, { tab: null, at: String(bar.node) })}
                  className={`bar-of ${bar.waiting ? "waiting" : "working"} ${bar.open ? "open" : ""}`}
                  aria-label={says(bar)}
                  title={says(bar)}
                  style={{ left: share(bar.start - timeline.start), width: `max(3px, calc(${share(bar.end - bar.start)} - 1px))` }}
                />
              ))}
            </div>
            <span className="quiet number">
              {duration(lane.working)}
              {lane.waiting > 0 && ` + ${duration(lane.waiting)}`}
            </span>
          </li>
        ))}
        {timeline.checks.length > 0 && (
          <li>
            <span className="name" title="Checks, run by the server">
              Checks
            </span>
            <div className="track">
              {timeline.checks.map((check, index) => {
                const text = `${check.id}: ${check.passed ? "passed" : "not passed"}, ${check.outcome}, ${duration(check.end - check.start)}`;
                return (
                  <Link
                    key={index}
                    to={withQuery(route, { tab: null, at: String(check.node) })}
                    className={`bar-of ${check.passed ? "check-passed" : "check-failed"}`}
                    aria-label={text}
                    title={text}
                    style={{ left: share(check.start - timeline.start), width: `max(5px, ${share(check.end - check.start)})` }}
                  />
                );
              })}
            </div>
            <span className="quiet number">{duration(timeline.checks.reduce((sum, check) => sum + check.end - check.start, 0))}</span>
          </li>
        )}
        <Ends from={timeline.start} to={timeline.end} />
      </ol>
      <table>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col" className="number">
              Working
            </th>
            <th scope="col" className="number">
              Waiting
            </th>
          </tr>
        </thead>
        <tbody>
          {timeline.lanes
            .flatMap((lane) => lane.bars)
            .sort((a, b) => a.start - b.start || a.node - b.node)
            .map((bar) => (
              <tr key={bar.node}>
                <th scope="row">
                  <code>{visible(bar.id)}</code>
                  {bar.open && <span className="quiet"> so far</span>}
                </th>
                <td className="number">{bar.waiting ? "" : duration(bar.end - bar.start)}</td>
                <td className="number">{bar.waiting ? duration(bar.end - bar.start) : ""}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </figure>
  );
}

/** When the lanes above begin and end; the day is left out where both are the same. */
function Ends({ from, to }: { from: number; to: number }) {
  const isOneDay = new Date(from).toDateString() === new Date(to).toDateString();
  const clock = isOneDay ? (CLOCK.format(from) === CLOCK.format(to) ? SECONDS : CLOCK) : WHEN;
  return (
    <li className="ends quiet" aria-hidden="true">
      <div>
        <span>{clock.format(from)}</span>
        {clock.format(to) !== clock.format(from) && <span>{clock.format(to)}</span>}
      </div>
    </li>
  );
}
