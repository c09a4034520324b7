import { useContext, useEffect, useRef, useState } from "react";
import { act, LiveContext, Refused, usePage } from "../api";
import { Artifact } from "../artifacts";
import { Markdown, visible } from "../markdown";
import { Link } from "../router";
import type { ActionDone, ConsoleError, DecideRequest, InboxPage, InboxQuestion } from "../types";
import { Empty, ErrorBox, Skeleton, Time } from "../ui";

const identity = (each: InboxQuestion) => `${each.question.sessionId} ${each.question.node} ${each.question.id}`;

export function Inbox() {
  const { data, error, reload } = usePage<InboxPage>("inbox");
  const [selected, setSelected] = useState<string | null>(null);
  const [message, setMessage] = useState("");
  const questions = data?.questions ?? [];
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

  return (
    <>
      <header className="page-head">
        <h1>Inbox</h1>
        <p className="quiet">What your agents wait for you to decide.</p>
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
      <div className="questions">
        {questions.map((each) => (
          <Question
            key={`${identity(each)} ${each.question.shown}`}
            asked={each}
            needsPin={data?.needsPin ?? false}
            isCurrent={each === current}
            onSelect={() => setSelected(identity(each))}
            onDecided={(text) => {
              setMessage(text);
              reload();
            }}
          />
        ))}
      </div>
    </>
  );
}

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return Boolean(event.metaKey || event.ctrlKey || event.altKey || target?.closest("input, textarea, select, dialog"));
}

interface QuestionProps {
  asked: InboxQuestion;
  needsPin: boolean;
  isCurrent: boolean;
  onSelect: () => void;
  onDecided: (message: string) => void;
}

function Question({ asked, needsPin, isCurrent, onSelect, onDecided }: QuestionProps) {
  const { question, handedIn, follows, workflowId } = asked;
  const live = useContext(LiveContext);
  const [chosen, setChosen] = useState<string | null>(null);
  const [note, setNote] = useState("");
  const [pin, setPin] = useState("");
  const [error, setError] = useState<ConsoleError | null>(null);
  const sending = useRef(false);
  const [isSending, setSending] = useState(false);
  const element = useRef<HTMLElement>(null);

  const decide = (option: string) => {
    if (sending.current) return;
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
          {live.state !== "live" && " · not live"}
        </p>
      </header>
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
      <fieldset className="options" disabled={isSending}>
        <legend className="sr-only">Options</legend>
        {question.options.map((option, index) => {
          const next = follows.find((each) => each.option === option.id)?.pending;
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
                {option.effect && <span className="quiet">Sets {visible(option.effect)}</span>}
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
            <input type="password" inputMode="numeric" value={pin} onChange={(event) => setPin(event.target.value)} autoComplete="off" />
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
