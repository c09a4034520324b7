import { useContext, useEffect, useRef, useState } from "react";
import { act, LiveContext, Refused } from "../api";
import type { Page } from "../api";
import { Artifact } from "../artifacts";
import { Markdown, visible } from "../markdown";
import { Link } from "../router";
import type { ActionDone, ConsoleError, DecideRequest, InboxPage, InboxQuestion } from "../types";
import { Empty, ErrorBox, Skeleton, Time } from "../ui";

/** A question stays the same one if it is asked again at a later node of its run. */
function identities(questions: InboxQuestion[]): Map<InboxQuestion, string> {
  const seen = new Map<string, number>();
  return new Map(
    questions.map((each) => {
      const key = `${each.question.sessionId} ${each.question.runId} ${each.question.id}`;
      const before = seen.get(key) ?? 0;
      seen.set(key, before + 1);
      return [each, before ? `${key} ${before}` : key];
    }),
  );
}

export function Inbox({ page: { data, error, reload } }: { page: Page<InboxPage> }) {
  const [selected, setSelected] = useState<string | null>(null);
  const [message, setMessage] = useState("");
  const questions = data?.questions ?? [];
  const keys = identities(questions);
  const identity = (each: InboxQuestion) => keys.get(each) ?? "";
  const before = useRef(new Map<InboxQuestion, string>());
  const decided = useRef(new Set<string>());
  const current = questions.find((each) => identity(each) === selected) ?? questions[0];

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event) || (event.key !== "j" && event.key !== "k") || !current) return;
      const at = questions.indexOf(current) + (event.key === "j" ? 1 : -1);
      const next = questions[Math.min(Math.max(at, 0), questions.length - 1)];
      if (next) setSelected(identity(next));
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [questions, current]);

  useEffect(() => {
    if (!data) return;
    const now = new Set(keys.values());
    const gone = [...before.current].find(([, key]) => !now.has(key) && !decided.current.has(key));
    if (gone) setMessage(`${visible(gone[0].question.name)} no longer waits: it was answered elsewhere, or the run went on.`);
    before.current = keys;
  }, [data]);

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
        {questions.map((each) => (
          <Question
            key={identity(each)}
            asked={each}
            needsPin={data?.needsPin ?? false}
            canDecide={data?.canDecide ?? false}
            isCurrent={each === current}
            onSelect={() => setSelected(identity(each))}
            onDecided={(text) => {
              decided.current.add(identity(each));
              setMessage(text);
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
  needsPin: boolean;
  canDecide: boolean;
  isCurrent: boolean;
  onSelect: () => void;
  onDecided: (message: string) => void;
}

function Question({ asked, needsPin, canDecide, isCurrent, onSelect, onDecided }: QuestionProps) {
  const { question, handedIn, follows, workflowId } = asked;
  const live = useContext(LiveContext);
  const [chosen, setChosen] = useState<string | null>(null);
  const [note, setNote] = useState("");
  const [pin, setPin] = useState("");
  const [error, setError] = useState<ConsoleError | null>(null);
  const [isChanged, setChanged] = useState(false);
  const shown = useRef(question.shown);
  const pinField = useRef<HTMLInputElement>(null);
  const sending = useRef(false);
  const [isSending, setSending] = useState(false);
  const element = useRef<HTMLElement>(null);

  useEffect(() => {
    if (shown.current === question.shown) return;
    shown.current = question.shown;
    setChanged(true);
    setChosen(null);
  }, [question.shown]);

  const decide = (option: string) => {
    if (sending.current || !canDecide) return;
    sending.current = true;
    setSending(true);
    setError(null);
    const request: DecideRequest = {
      sessionId: question.sessionId,
      node: question.node,
      id: question.id,
      shown: question.shown,
      option,
      owner: asked.owner,
      note,
      pin,
    };
    act<ActionDone>("decide", request)
      .then((done) => onDecided(done.message))
      .catch((refused: unknown) => {
        sending.current = false;
        setSending(false);
        if (!(refused instanceof Refused)) throw refused;
        setError(refused.error);
        if (refused.error.code.startsWith("PIN")) pinField.current?.focus();
        if (refused.status === 409) onDecided(refused.error.message);
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

  const label = question.options.find((option) => option.id === chosen)?.label;
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
      <fieldset className="options" disabled={isSending || !canDecide}>
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
          <strong>{visible(label ?? chosen)}</strong>: press <kbd>Enter</kbd> to decide, <kbd>Esc</kbd> to think again.
        </p>
      )}
      {error && <ErrorBox error={error} />}
    </article>
  );
}
