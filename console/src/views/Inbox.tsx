import { useContext, useEffect, useMemo, useRef, useState } from "react";
import { act, LiveContext, Refused } from "../api";
import type { Page } from "../api";
import { Artifact } from "../artifacts";
import { Markdown, visible } from "../markdown";
import { Link, useRoute } from "../router";
import type { ActionDone, ConsoleError, DecideRequest, InboxPage, InboxQuestion } from "../types";
import { Clock, Empty, ErrorBox, Skeleton, Time } from "../ui";

const MOVED_MS = 700;

/** The place of a question on the page, which it keeps if it changes: its run and instance, among branches its node. */
function places(questions: InboxQuestion[]): Map<InboxQuestion, string> {
  const instance = ({ question }: InboxQuestion) => `${question.sessionId} ${question.runId} ${question.key}`;
  const count = new Map<string, number>();
  for (const each of questions) count.set(instance(each), (count.get(instance(each)) ?? 0) + 1);
  return new Map(questions.map((each) => [each, (count.get(instance(each)) ?? 0) > 1 ? `${instance(each)} ${each.question.node}` : instance(each)]));
}

/** What an answer is for: exactly this question as it is on the screen. */
function identity({ question }: InboxQuestion): string {
  return `${question.sessionId} ${question.node} ${question.key} ${question.shown}`;
}

/** What was on the page stays where it is; what has arrived since comes after it. */
function inPlace(order: string[], keys: Map<InboxQuestion, string>): InboxQuestion[] {
  const known = new Map([...keys].map(([each, key]) => [key, each]));
  const kept = order.flatMap((key) => known.get(key) ?? []);
  return [...kept, ...[...keys.keys()].filter((each) => !kept.includes(each))];
}

export function Inbox({ page: { data, error, reload } }: { page: Page<InboxPage> }) {
  const [selected, setSelected] = useState<string | null>(null);
  const [message, setMessage] = useState("");
  const { query } = useRoute();
  const order = useRef<string[]>([]);
  const keys = useMemo(() => places(data?.questions ?? []), [data]);
  const questions = useMemo(() => inPlace(order.current, keys), [keys]);
  const before = useRef<InboxQuestion[]>([]);
  const decided = useRef(new Set<string>());
  const linked = useRef(false);
  const current = questions.find((each) => identity(each) === selected);

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event) || (event.key !== "j" && event.key !== "k")) return;
      const at = current ? questions.indexOf(current) + (event.key === "j" ? 1 : -1) : 0;
      const next = questions[Math.min(Math.max(at, 0), questions.length - 1)];
      if (next) setSelected(identity(next));
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [questions, current]);

  useEffect(() => {
    if (!data) return;
    const was = before.current;
    const now = new Set(questions.map(identity));
    const asked = new Set(keys.values());
    const goneAt = was.findIndex((each) => identity(each) === selected && !now.has(selected));
    const mine = goneAt >= 0 && decided.current.has(selected ?? "");
    // whoever has just decided goes on with the next; what went away by itself leaves nothing to answer by mistake
    const next = [...was.slice(goneAt + 1), ...was.slice(0, Math.max(goneAt, 0)).reverse()].find((each) => now.has(identity(each))) ?? questions[0];
    if (!linked.current && query.get("shown")) {
      linked.current = true;
      // an address names one question as it was shown; no other one is selected in its place
      const meant = questions.find(({ question }) => question.sessionId === query.get("session") && question.shown === query.get("shown"));
      setSelected(meant ? identity(meant) : null);
      if (!meant) setMessage("The question of this address no longer waits: it was answered, it has changed, or the run went on.");
    } else if (was.length === 0 || mine) setSelected(next ? identity(next) : null);
    const gone = was.findIndex((each, index) => !asked.has(order.current[index] ?? "") && !decided.current.has(identity(each)));
    const left = was[gone];
    if (left) setMessage(`${visible(left.question.name)} no longer waits: it was answered elsewhere, or the run went on.`);
    before.current = questions;
    order.current = questions.map((each) => keys.get(each) ?? "");
  }, [data]);

  const layout = questions.map(identity);
  return (
    <>
      <header className="page-head">
        <h1>Inbox</h1>
        <p className="quiet">What your agents wait for you to decide.</p>
        <Notify />
      </header>
      <div role="status" className="toast">
        {message}
      </div>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={3} />}
      {data && questions.length === 0 && (
        <Empty title="Nothing waits for you" command="interlock play wr.small_task">
          <p>When a run reaches a gate, its question appears here by itself. To see one, work through a workflow on a terminal:</p>
        </Empty>
      )}
      {data && !data.canDecide && questions.length > 0 && (
        <p className="notice">You may read these questions. An agent may hold a token of your role, so a principal of the role approver decides them.</p>
      )}
      <div className="questions">
        {questions.map((each, index) => (
          <Question
            key={keys.get(each)}
            asked={each}
            place={layout.slice(0, index + 1).join("\n")}
            needsPin={data?.needsPin ?? false}
            canDecide={data?.canDecide ?? false}
            isCurrent={each === current}
            onSelect={() => setSelected(identity(each))}
            onSent={() => decided.current.add(identity(each))}
            onDecided={(text) => {
              setMessage(text);
              reload();
            }}
            onRefused={(refused) => {
              decided.current.delete(identity(each));
              if (refused.status !== 409) return;
              setMessage(refused.error.message);
              reload();
            }}
          />
        ))}
      </div>
      {data?.more && <p className="quiet">More questions wait; they appear as you answer these.</p>}
    </>
  );
}

/** Asks once whether the browser may say that a question waits while another page is looked at. */
function Notify() {
  const [permission, setPermission] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  if (permission !== "default") return null;
  return (
    <p>
      <button type="button" className="button small" onClick={() => void Notification.requestPermission().then(setPermission)}>
        Notify me when a question waits
      </button>
    </p>
  );
}

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return Boolean(event.metaKey || event.ctrlKey || event.altKey || target?.closest("input, textarea, select, dialog"));
}

interface QuestionProps {
  asked: InboxQuestion;
  place: string;
  needsPin: boolean;
  canDecide: boolean;
  isCurrent: boolean;
  onSelect: () => void;
  onSent: () => void;
  onDecided: (message: string) => void;
  onRefused: (refused: Refused) => void;
}

/** Says for a moment that this has changed, or has moved under the pointer: a click then was meant for something else. */
function useMoved(place: string): boolean {
  const [settled, setSettled] = useState(place);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(place), MOVED_MS);
    return () => clearTimeout(timer);
  }, [place]);
  return settled !== place;
}

function Question({ asked, place, needsPin, canDecide, isCurrent, onSelect, onSent, onDecided, onRefused }: QuestionProps) {
  const { question, handedIn, follows, workflowId } = asked;
  const live = useContext(LiveContext);
  const [chosen, setChosen] = useState<string | null>(null);
  const [note, setNote] = useState("");
  const [pin, setPin] = useState("");
  const [error, setError] = useState<ConsoleError | null>(null);
  const [isChanged, setChanged] = useState(false);
  const shown = useRef(question.shown);
  const hasMoved = useMoved(place);
  const pinField = useRef<HTMLInputElement>(null);
  const sending = useRef(false);
  const [isSending, setSending] = useState(false);
  const element = useRef<HTMLElement>(null);

  useEffect(() => {
    setChosen(null);
    sending.current = false;
    setSending(false);
  }, [identity(asked)]);

  useEffect(() => {
    if (shown.current === question.shown) return;
    shown.current = question.shown;
    setChanged(true);
  }, [question.shown]);

  const decide = (option: string) => {
    if (sending.current || !canDecide) return;
    sending.current = true;
    setSending(true);
    setError(null);
    onSent();
    const request: DecideRequest = {
      sessionId: question.sessionId,
      runId: question.runId,
      node: question.node,
      id: question.id,
      key: question.key,
      shown: question.shown,
      option,
      owner: asked.owner,
      note,
      pin,
    };
    act<ActionDone>("decide", request)
      .then((done) => onDecided(`${visible(question.name)}: ${done.message}`))
      .catch((refused: unknown) => {
        sending.current = false;
        setSending(false);
        if (!(refused instanceof Refused)) throw refused;
        setError(refused.error);
        if (refused.error.code.startsWith("PIN")) pinField.current?.focus();
        onRefused(refused);
      });
  };

  useEffect(() => {
    if (!isCurrent) return;
    const pressed = (event: KeyboardEvent) => {
      const option = question.options[Number(event.key) - 1];
      if (isTyping(event) || event.repeat) return;
      if (event.key === "Escape") setChosen(null);
      else if (event.key === "Enter" && chosen !== null && !(event.target as HTMLElement).closest("button, a")) decide(chosen);
      else if (option) {
        event.preventDefault();
        setChosen(option.id);
        element.current?.scrollIntoView({ block: "nearest" });
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });

  const labelOf = (id: string) => question.options.find((option) => option.id === id)?.label ?? id;
  return (
    <article ref={element} className={`question ${isCurrent ? "current" : ""}`} aria-labelledby={`q-${question.sessionId}-${question.node}-${question.id}`} onFocus={onSelect} onClick={onSelect}>
      <header>
        <h2 id={`q-${question.sessionId}-${question.node}-${question.id}`}>{visible(question.name)}</h2>
        <p className="quiet">
          <Link to={`/console/sessions/${question.ref}`}>{visible(question.title)}</Link> · <code>{workflowId}</code> · asked{" "}
          <Time at={question.since} />
          {asked.owner !== "local" && ` · ${visible(asked.owner)}`}
          {live.state !== "live" && " · not live"}
        </p>
      </header>
      {isChanged && (
        <p className="notice" role="status">
          This question has changed since you first saw it. Read it again before you answer.
        </p>
      )}
      <Markdown text={question.message} />
      {handedIn && (
        <details className="handed-in" open>
          <summary>What the agent handed in</summary>
          {handedIn.notes.map((text, index) => (
            <Markdown key={index} text={text} />
          ))}
          {handedIn.artifacts.map((artifact, index) => (
            <Artifact key={index} artifact={artifact} />
          ))}
        </details>
      )}
      <fieldset className="options" disabled={isSending || hasMoved || !canDecide}>
        <legend className="sr-only">Options</legend>
        {question.options.map((option, index) => {
          const { effects, pending: next } = follows.find((each) => each.option === option.id) ?? { effects: [], pending: null };
          return (
            <button
              key={option.id}
              type="button"
              className={`option ${chosen === option.id ? "chosen" : ""}`}
              aria-pressed={chosen === option.id}
              aria-keyshortcuts={index < 9 ? String(index + 1) : undefined}
              onClick={() => decide(option.id)}
            >
              {index < 9 && <kbd aria-hidden="true">{index + 1}</kbd>}
              <span>
                <strong>{visible(option.label)}</strong>
                {option.description && <span>{visible(option.description)}</span>}
                {effects.length > 0 && <span className="quiet effects">{visible(effects.join("; "))}</span>}
                {next && <span className="quiet">{next.kind === "nothing" ? "Then the run is complete" : `Then: ${visible(next.title)}`}</span>}
              </span>
            </button>
          );
        })}
        {question.options.length === 0 && (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const answer = new FormData(event.currentTarget).get("answer");
              if (typeof answer === "string" && answer.trim()) decide(answer);
            }}
          >
            <label className="field">
              Your answer
              <input name="answer" autoComplete="off" required />
            </label>
            <button className="button primary" type="submit">
              Answer
            </button>
          </form>
        )}
      </fieldset>
      {question.default && (
        <p className="quiet">
          Without an answer: <strong>{visible(labelOf(question.default))}</strong>, from <Clock at={question.defaultAt} /> on.
        </p>
      )}
      <div className="row">
        <label className="field grow">
          A note for the agent (optional)
          <input value={note} maxLength={2000} onChange={(event) => setNote(event.target.value)} autoComplete="off" />
        </label>
        {needsPin && (
          <label className="field">
            PIN
            <input ref={pinField} type="password" inputMode="numeric" value={pin} onChange={(event) => setPin(event.target.value)} autoComplete="off" />
          </label>
        )}
      </div>
      {chosen !== null && (
        <p className="confirm" role="status">
          <strong>{visible(labelOf(chosen))}</strong>: press <kbd>Enter</kbd> to decide, <kbd>Esc</kbd> to think again.
        </p>
      )}
      {error && <ErrorBox error={error} />}
    </article>
  );
}
