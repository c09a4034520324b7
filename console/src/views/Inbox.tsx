import { useCallback, useContext, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { MouseEvent } from "react";
import { get, LiveContext, Refused, useAskedAgain } from "../api";
import { useCommands } from "../commands";
import { undo, useHeldAnswers } from "../held";
import { visible } from "../markdown";
import { Notify } from "../notifications";
import { go, Link, useRoute, withQuery } from "../router";
import type { ConsoleError, InboxChoice, InboxLine, InboxPage } from "../types";
import { Clock, Empty, ErrorBox, Skeleton, Time } from "../ui";
import { Question } from "./Question";
import "./inbox.css";

const COUNT_AGAIN_MS = 400;
const PAGE = 100;
const NARROWING = ["workflow", "project", "owner", "decider", "due", "equal"];
const FILTERS = [...NARROWING, "order", "grouped", "offset"];
const DECIDERS: Record<string, string> = { "*": "anybody who decides", "*me": "me" };
const DUE: [string, string][] = [
  ["any", "With a due time"],
  ["hour", "Due within an hour"],
  ["day", "Due within a day"],
];
const isNarrow = () => window.matchMedia("(max-width: 860px)").matches;
const number = (count: number) => count.toLocaleString("en");

interface Listed {
  key: string;
  page: InboxPage | null;
  lines: InboxLine[];
  changed: ReadonlySet<string>;
  error: ConsoleError | null;
}

/** The lines of one look at the inbox. What comes later is counted, and shown when it is asked for. */
function useListed(query: Record<string, string>): { listed: Listed; look: () => void; update: () => void } {
  const key = JSON.stringify(query);
  const live = useContext(LiveContext);
  const [listed, setListed] = useState<Listed>({ key, page: null, lines: [], changed: new Set(), error: null });
  const now = useRef(listed);
  now.current = listed;
  const wanted = useRef({ key, query });
  wanted.current = { key, query };
  const asking = useRef(false);
  const again = useRef<"" | "look" | "update">("");

  const ask = useCallback((how: "look" | "update") => {
    if (asking.current) {
      again.current = again.current === "look" ? "look" : how;
      return;
    }
    asking.current = true;
    const { key: asked, query: filters } = wanted.current;
    const before = now.current.key === asked ? now.current : null;
    const isUpdate = how === "update" && before !== null && before.lines.length > 0;
    const places = isUpdate ? { known: before.lines.map((line) => line.place).join(","), seen: String(before.page?.newest ?? 0) } : {};
    get<InboxPage>("inbox", { ...filters, ...places })
      .then(
        (page) => {
          if (!isUpdate) {
            setListed({ key: asked, page, lines: page.questions, changed: new Set(), error: null });
            return;
          }
          const found = new Map(page.questions.map((line) => [line.place, line]));
          const lines = before.lines.flatMap((line) => found.get(line.place) ?? []);
          const others = before.lines.filter((line) => found.get(line.place) && found.get(line.place)?.question.shown !== line.question.shown);
          const changed = new Set([...before.changed, ...others.map((line) => line.place)]);
          setListed({ key: asked, page: { ...page, newest: before.page?.newest ?? 0, offset: before.page?.offset ?? 0 }, lines, changed, error: null });
          if (lines.length === 0 && page.matching > 0) again.current = "look";
        },
        (error: unknown) => {
          if (error instanceof Refused) setListed((last) => ({ ...last, error: error.error }));
        },
      )
      .finally(() => {
        asking.current = false;
        const missed = wanted.current.key === asked ? again.current : "look";
        again.current = "";
        if (missed) window.setTimeout(() => ask(missed), 0);
      });
  }, []);

  const look = useCallback(() => ask("look"), [ask]);
  const update = useCallback(() => ask("update"), [ask]);
  useEffect(look, [look, key]);
  const tick = useRef(live.tick);
  useEffect(() => {
    if (tick.current !== live.tick) ask("update");
    tick.current = live.tick;
  }, [ask, live.tick]);
  useAskedAgain(update);
  const isCounting = listed.page?.counting ?? false;
  useEffect(() => {
    if (!isCounting) return;
    const timer = window.setTimeout(() => ask(now.current.lines.length < PAGE ? "look" : "update"), COUNT_AGAIN_MS);
    return () => window.clearTimeout(timer);
  }, [ask, isCounting, listed]);
  return { listed: listed.key === key ? listed : { ...listed, page: null, lines: [] }, look, update };
}

export function Inbox() {
  const route = useRoute();
  const held = useHeldAnswers();
  const query = Object.fromEntries(FILTERS.flatMap((name) => (route.query.get(name) ? [[name, route.query.get(name) ?? ""]] : [])));
  const { listed, look, update } = useListed(query);
  const { page, lines, error } = listed;
  const [pin, setPin] = useState("");
  const [isBulk, setBulk] = useState(false);
  const [session, place, shown] = ["session", "place", "shown"].map((name) => route.query.get(name) ?? "");
  const answered = new Set(held.filter((each) => each.state !== "refused").flatMap((each) => each.questions.map((question) => question.place)));
  const current = lines.find((line) => line.place === place);
  const offset = page?.offset ?? 0;
  const equal = query.equal ?? "";

  const select = (line: InboxLine | undefined, replace: boolean) => {
    setBulk(false);
    go(withQuery(route, { session: line?.question.sessionId ?? null, place: line?.place ?? null, shown: null }), replace);
  };
  const step = (by: number, from = place) => {
    const free = (line: InboxLine) => !answered.has(line.place) && line.place !== from;
    const at = lines.findIndex((line) => line.place === from);
    if (at < 0) return lines.find(free);
    return by > 0 ? lines.slice(at + 1).find(free) : lines.slice(0, at).findLast(free);
  };

  // On a wide screen the first question is opened at once. Nothing is selected in the place of one that went away.
  const hasOpened = useRef(Boolean(session));
  useEffect(() => {
    if (hasOpened.current || !lines[0] || isNarrow()) return;
    hasOpened.current = true;
    select(lines[0], true);
  }, [page]);
  const isEmpty = page !== null && lines.length === 0;
  useEffect(() => {
    if (isEmpty && !session) hasOpened.current = false;
  }, [isEmpty, session]);

  const settled = held.filter((each) => each.state === "recorded" || each.state === "refused").length;
  const before = useRef(settled);
  useEffect(() => {
    if (settled > before.current) update();
    before.current = settled;
  }, [settled, update]);

  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event) || event.repeat) return;
      if (event.key === "j" || event.key === "k") {
        const next = step(event.key === "j" ? 1 : -1);
        if (next) select(next, true);
        document.querySelector(`[data-place="${next?.place}"]`)?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "u") {
        const undone = undo();
        if (undone?.questions[0]) go(withQuery(route, { session: undone.questions[0].request.sessionId, place: undone.questions[0].place }), true);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });
  useCommands([{ label: "Undo the last answer", hint: "u", run: () => void undo() }]);

  const narrowed = (changes: Record<string, string | null>) => withQuery({ ...route, path: ["inbox"] }, { offset: null, session: null, place: null, shown: null, ...changes });
  const narrow = (changes: Record<string, string | null>) => {
    hasOpened.current = false;
    go(narrowed(changes));
  };
  const isFiltered = NARROWING.some((name) => query[name]);
  const bulk = isBulk && current ? lines.filter((line) => line.equal === current.equal && !answered.has(line.place)) : [];

  return (
    <div className={`triage ${session ? "opened" : ""}`}>
      <section className="triage-list" aria-label="Questions">
        <header className="page-head">
          <h1>Inbox</h1>
          <p className="quiet" role="status">
            {page && (page.total === 0 ? "What your agents wait for you to decide." : isFiltered ? `${number(page.matching)} of ${number(page.total)} questions` : `${number(page.total)} ${page.total === 1 ? "question waits" : "questions wait"}`)}
            {page?.counting && ", still counting …"}
          </p>
          {page?.canDecide && <Notify />}
        </header>
        {page && page.total > 0 && (
          <div className="filters triage-filters">
            <Choices label="Workflow" choices={page.workflows} value={query.workflow} onChange={(workflow) => narrow({ workflow })} />
            <Choices label="Project" choices={page.projects} value={query.project} onChange={(project) => narrow({ project })} />
            {page.owners.length > 1 && <Choices label="Whose" choices={page.owners} value={query.owner} onChange={(owner) => narrow({ owner })} />}
            {page.deciders.some((choice) => choice.value !== "*" && choice.value !== "*me") && <Choices label="Waits for" choices={page.deciders} value={query.decider} onChange={(decider) => narrow({ decider })} />}
            <select aria-label="Due" value={query.due ?? ""} onChange={(event) => narrow({ due: event.target.value })}>
              <option value="">Any time</option>
              {DUE.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
            <select aria-label="Order" value={query.order ?? ""} onChange={(event) => narrow({ order: event.target.value })}>
              <option value="">Oldest first</option>
              <option value="newest">Newest first</option>
            </select>
            <label className="tick">
              <input type="checkbox" checked={Boolean(query.grouped)} onChange={(event) => narrow({ grouped: event.target.checked ? "1" : null })} /> Group equal
            </label>
          </div>
        )}
        {equal && (
          <p className="notice">
            Equal questions: the same text, options and report. <Link to={narrowed({ equal: null })}>Show all</Link>
          </p>
        )}
        <div role="status" className="arrivals">
          {page && page.fresh > 0 && (
            <button type="button" className="button small" onClick={look}>
              {number(page.fresh)} new {page.fresh === 1 ? "question" : "questions"} · Show
            </button>
          )}
        </div>
        {error && <ErrorBox error={error} />}
        {!page && !error && <Skeleton rows={5} />}
        {page && page.total === 0 && (
          <Empty title="Nothing waits for you" command="interlock play wr.small_task">
            <p>When a run reaches a gate, its question appears here by itself. To see one, work through a workflow on a terminal:</p>
          </Empty>
        )}
        {page && page.total > 0 && page.matching === 0 && (
          <Empty title="No question like this">
            <p>
              <Link to="/console/inbox">Show all that wait</Link>
            </p>
          </Empty>
        )}
        <ol className="lines">
          {lines.map((line) => (
            <li key={line.place} data-place={line.place} className={answered.has(line.place) ? "answered" : ""}>
              <a
                href={withQuery(route, { session: line.question.sessionId, place: line.place, shown: null })}
                aria-current={line.place === place ? "true" : undefined}
                onClick={(event: MouseEvent) => {
                  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
                  event.preventDefault();
                  select(line, !isNarrow());
                  window.scrollTo(0, 0);
                }}
              >
                <span className="line-head">
                  <strong>{visible(line.name)}</strong>
                  <span className="quiet">
                    <Time at={line.since} />
                  </span>
                </span>
                <span className="line-title">{visible(line.title)}</span>
                <span className="line-foot quiet">
                  <code>{line.workflowId}</code>
                  {page && page.owners.length > 1 && <span>{visible(line.owner)}</span>}
                  {line.equals > 1 && <span className="badge quiet">{number(line.equals)} equal</span>}
                  {line.dueAt > 0 && (
                    <span className="badge waiting">
                      due <Clock at={line.dueAt} />
                    </span>
                  )}
                  {line.decide && (
                    <span className="badge quiet">
                      {line.decide.answered.length} of {line.decide.atLeast} answered
                    </span>
                  )}
                  {line.decide && line.decide.missing.length > 0 && <span>missing: {visible(line.decide.missing.join(", "))}</span>}
                  {listed.changed.has(line.place) && <span className="badge waiting">changed</span>}
                  {answered.has(line.place) && <span className="badge complete">answered, not sent yet</span>}
                </span>
              </a>
            </li>
          ))}
        </ol>
        {page && page.rows > PAGE && (
          <nav className="row pager" aria-label="Pages of questions">
            {offset > 0 && <Link to={narrowed({ offset: offset > PAGE ? String(offset - PAGE) : null })}>Previous {PAGE}</Link>}
            <span className="quiet">
              {number(offset + 1)} to {number(offset + lines.length)} of {number(page.rows)}
            </span>
            {offset + PAGE < page.rows && <Link to={narrowed({ offset: String(offset + PAGE) })}>Next {PAGE}</Link>}
          </nav>
        )}
      </section>
      <section className="triage-detail" aria-label="The selected question">
        {session ? (
          <>
            <p className="to-list">
              <Link to={withQuery(route, { session: null, place: null, shown: null })}>‹ All questions</Link>
            </p>
            <Question
              key={`${session} ${place || shown}`}
              session={session}
              place={place ?? ""}
              shown={shown ?? ""}
              pin={pin}
              setPin={setPin}
              needsPin={page?.needsPin ?? false}
              canDecide={page?.canDecide ?? true}
              held={held.find((each) => each.state !== "refused" && each.questions.some((question) => question.place === place))}
              equals={current?.equals ?? 1}
              bulk={bulk}
              isBulk={isBulk}
              setBulk={equal && lines.length > 1 ? setBulk : null}
              onFound={(line) => go(withQuery(route, { session: line.question.sessionId, place: line.place, shown: null }), true)}
              onHeld={(places) => {
                const free = lines.filter((line) => !answered.has(line.place) && !places.includes(line.place));
                const at = lines.findIndex((line) => line.place === place);
                select(free.find((line) => lines.indexOf(line) > at) ?? free[0], true);
              }}
              onNext={() => select(step(1) ?? step(-1), true)}
              equalTo={(line) => narrowed({ equal: line.equal, grouped: null, session: line.question.sessionId, place: line.place })}
            />
          </>
        ) : (
          lines.length > 0 && <p className="quiet nothing-selected">No question is selected. Choose one, or press j.</p>
        )}
      </section>
    </div>
  );
}

function Choices({ label, choices, value, onChange }: { label: string; choices: InboxChoice[]; value: string | undefined; onChange: (value: string | null) => void }) {
  if (choices.length === 0) return null;
  return (
    <select aria-label={label} value={value ?? ""} onChange={(event) => onChange(event.target.value || null)}>
      <option value="">{label}: all</option>
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {visible(label === "Project" ? (choice.value.split(/[\\/]/).pop() ?? "") : (DECIDERS[choice.value] ?? choice.value))} ({number(choice.count)})
        </option>
      ))}
    </select>
  );
}

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return Boolean(event.metaKey || event.ctrlKey || event.altKey || target?.closest("input:not([type=checkbox]), textarea, select, dialog"));
}
