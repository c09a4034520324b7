import { useCallback, useContext, useEffect, useLayoutEffect, useRef, useState } from "react";
import { get, LiveContext, Refused, useAskedAgain } from "../api";
import { Artifact } from "../artifacts";
import { Checks } from "../checks";
import { drafts, hold, undo } from "../held";
import type { HeldAnswer } from "../held";
import { Markdown, visible } from "../markdown";
import { Link } from "../router";
import type { Approving, ConsoleError, InboxLine, InboxQuestion, Substance, WaitingQuestion } from "../types";
import { Clock, ErrorBox, Skeleton, Time } from "../ui";
import { isTyping } from "./Inbox";

const SETTLE_MS = 700;

interface QuestionProps {
  session: string;
  place: string;
  shown: string;
  pin: string;
  setPin: (pin: string) => void;
  needsPin: boolean;
  canDecide: boolean;
  held: HeldAnswer | undefined;
  equals: number;
  bulk: InboxLine[];
  isBulk: boolean;
  setBulk: ((on: boolean) => void) | null;
  onFound: (line: InboxLine) => void;
  onHeld: (places: string[]) => void;
  onNext: () => void;
  equalTo: (line: InboxLine) => string;
}

/** Says for a moment that something else is on the screen than before: a click then was meant for that. */
function useSettled(what: string): boolean {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(what), SETTLE_MS);
    return () => window.clearTimeout(timer);
  }, [what]);
  return settled === what;
}

/** One question with its substance. An answer is for what is on the screen: its digest goes with it. */
export function Question(props: QuestionProps) {
  const { session, place, shown } = props;
  const live = useContext(LiveContext);
  const [asked, setAsked] = useState<InboxQuestion | null>(null);
  const [error, setError] = useState<ConsoleError | null>(null);
  const [isChanged, setChanged] = useState(false);
  const on = useRef<string | null>(null);

  const load = useCallback(() => {
    get<InboxQuestion>(`inbox/${session}`, place ? { place } : { shown }).then(
      (found) => {
        if (on.current !== null && on.current !== found.question.shown) setChanged(true);
        on.current = found.question.shown;
        setAsked(found);
        setError(null);
        if (!place) props.onFound(found.line);
      },
      (refused: unknown) => {
        if (!(refused instanceof Refused)) return;
        setError(refused.error);
        if (refused.status === 404) setAsked(null);
      },
    );
  }, [session, place, shown]);
  useEffect(load, [load]);
  useAskedAgain(load);
  const tick = useRef(live.tick);
  useEffect(() => {
    if (tick.current !== live.tick && (live.moved.size === 0 || live.moved.has(session))) load();
    tick.current = live.tick;
  }, [live, load, session]);

  if (error && !asked)
    return error.code === "NOT_FOUND" ? (
      <div className="notice gone" role="status">
        <p>
          <strong>{shown ? "The question of this address no longer waits" : "This question no longer waits"}</strong>: it was answered, it has changed, or the run went on.
        </p>
        <p>
          <button type="button" className="button small" onClick={props.onNext}>
            Next question
          </button>{" "}
          <Link to={`/console/sessions/${session}`}>Open its session</Link>
        </p>
      </div>
    ) : (
      <ErrorBox error={error} />
    );
  if (!asked) return <Skeleton rows={4} />;
  return (
    <>
      {error && <ErrorBox error={error} />}
      <Asked {...props} key={asked.question.shown} asked={asked} isChanged={isChanged} />
    </>
  );
}

function Asked({ asked, isChanged, pin, setPin, needsPin, canDecide: hasRole, held, equals, bulk, isBulk, setBulk, onHeld, equalTo }: QuestionProps & { asked: InboxQuestion; isChanged: boolean }) {
  const { line, question, substance } = asked;
  const canDecide = hasRole && line.mayDecide;
  const live = useContext(LiveContext);
  const [chosen, setChosen] = useState<string | null>(null);
  const [note, setNote] = useState(drafts.get(line.place) ?? "");
  useEffect(() => {
    drafts.set(line.place, note);
  }, [line.place, note]);
  const [lacksPin, setLacksPin] = useState(false);
  const noteField = useRef<HTMLTextAreaElement>(null);
  const pinField = useRef<HTMLInputElement>(null);
  const isSettled = useSettled(question.shown);
  const labelOf = (id: string) => question.options.find((option) => option.id === id)?.label ?? id;

  const decide = (option: string) => {
    if (held || !canDecide) return;
    if (needsPin && !pin) {
      setLacksPin(true);
      pinField.current?.focus();
      return;
    }
    const answered = isBulk ? bulk : [line];
    // the line of the list may be newer than what is on the screen: the digest is that of the screen
    const requests = answered.map((each) => ({
      place: each.place,
      name: each.name,
      title: each.title,
      request: { ...(each.place === line.place ? line : each).question, option, owner: each.owner, note, pin },
    }));
    hold(labelOf(option), note, requests);
    onHeld(requests.map((each) => each.place));
  };

  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.target === noteField.current && event.key === "Escape") noteField.current?.blur();
      if (isTyping(event) || event.repeat || held) return;
      const option = question.options[Number(event.key) - 1];
      if (event.key === "Escape") setChosen(null);
      else if (event.key === "Enter" && chosen !== null && !(event.target as HTMLElement).closest("button, a, summary")) decide(chosen);
      else if (event.key === "n") {
        event.preventDefault();
        noteField.current?.focus();
      } else if (option && canDecide) {
        event.preventDefault();
        setChosen(option.id);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });

  return (
    <article className="question current" aria-labelledby="asked-name">
      <header>
        <h2 id="asked-name">{visible(question.name)}</h2>
        <p className="quiet">
          <Link to={`/console/sessions/${question.ref}`}>{visible(question.title)}</Link> · <code>{line.workflowId}</code> · asked <Time at={question.since} />
          {line.owner !== "local" && ` · ${visible(line.owner)}`}
          {live.state !== "live" && " · not live"}
        </p>
      </header>
      {isChanged && (
        <p className="notice" role="status">
          This question has changed since you first saw it. Read it again before you answer.
        </p>
      )}
      <Markdown text={question.message} />
      {held && (
        <p className="notice">
          You answered <strong>{visible(held.label)}</strong>.{" "}
          {held.state === "held" && (
            <button type="button" className="button small" onClick={() => undo(held.number)}>
              Undo
            </button>
          )}
        </p>
      )}
      {hasRole && !canDecide && <p className="notice">You may read this question. Its gate names who decides it, and you are not among them.</p>}
      {!hasRole && <p className="notice">You may read this question. An agent may hold a token of your role, so a principal of the role approver decides it.</p>}
      <fieldset className="options" disabled={Boolean(held) || !isSettled || !canDecide}>
        <legend className="sr-only">Options</legend>
        {question.options.map((option, index) => (
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
              <strong>
                {visible(option.label)}
                {isBulk && ` · all ${bulk.length}`}
              </strong>
              {option.description && <span>{visible(option.description)}</span>}
              {option.effect && <span className="quiet">{visible(effectInWords(option.effect))}</span>}
              <Follows substance={substance} option={option.id} />
            </span>
          </button>
        ))}
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
      {chosen !== null && !held && (
        <p className="confirm" role="status">
          <strong>{visible(labelOf(chosen))}</strong>: press <kbd>Enter</kbd> to answer, <kbd>Esc</kbd> to think again.
        </p>
      )}
      {/* below the options: a question that arrives must not move them under the pointer */}
      {equals > 1 && (
        <p className="equal quiet">
          {setBulk ? (
            <label className="tick">
              <input type="checkbox" checked={isBulk} onChange={(event) => setBulk(event.target.checked)} /> Give the same answer to all equal questions of this list{isBulk && ` (${bulk.length})`}
            </label>
          ) : (
            <>
              {equals} equal questions wait: the same text, options and report. <Link to={equalTo(line)}>Answer them together</Link>
            </>
          )}
        </p>
      )}
      {question.decide && <Deciders approving={question.decide} labelOf={labelOf} />}
      {question.default && !question.decide?.until && (
        <p className="quiet">
          Without an answer: <strong>{visible(labelOf(question.default))}</strong>, from <Clock at={question.defaultAt} /> on.
        </p>
      )}
      {canDecide && !held && (
        <div className="row answer-row">
          <label className="field grow">
            A note for the agent (optional)
            <textarea ref={noteField} rows={1} value={note} maxLength={2000} onChange={(event) => setNote(event.target.value)} autoComplete="off" />
          </label>
          {needsPin && (
            <label className="field">
              PIN
              <input ref={pinField} type="password" inputMode="numeric" value={pin} onChange={(event) => setPin(event.target.value)} autoComplete="off" />
            </label>
          )}
        </div>
      )}
      {lacksPin && !pin && <ErrorBox error={{ code: "PIN_REQUIRED", message: "Deciding needs your PIN.", nextAction: "Enter it, then answer." }} />}
      <Report substance={substance} question={question} />
      <p className="quiet hints" aria-hidden="true">
        <kbd>1</kbd>…<kbd>9</kbd> choose <kbd>Enter</kbd> answer <kbd>n</kbd> note <kbd>u</kbd> undo <kbd>j</kbd> <kbd>k</kbd> next, previous
      </p>
    </article>
  );
}

/** Who decides, who has answered and who has not, and what happens when nobody does. */
function Deciders({ approving, labelOf }: { approving: Approving; labelOf: (option: string) => string }) {
  const { by, atLeast, answered, missing, notBy, until, then, escalatedTo } = approving;
  return (
    <section className="deciders" aria-label="Who decides">
      <p className="quiet">
        Decided by {atLeast > 1 && `${atLeast} of `}
        <strong>{visible(by.join(", "))}</strong>
        {notBy && `, not ${visible(notBy)}`}
        {escalatedTo && `; escalated to ${visible(escalatedTo)}`}.
        {missing.length > 0 && ` Missing: ${visible(missing.join(", "))}.`}
        {until > 0 && (
          <>
            {" "}
            Until <Clock at={until} />
            {then && `; then ${visible(then)}`}.
          </>
        )}
      </p>
      {answered.length > 0 && (
        <ul>
          {answered.map((each) => (
            <li key={each.by}>
              {visible(each.by)}
              {each.seat && ` for ${visible(each.seat)}`}: <strong>{visible(labelOf(each.option))}</strong>, <Clock at={each.at} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function effectInWords(effect: string): string {
  const clauses = effect.split("; ").map((clause) => clause.replace(/^([^\s=]+) = /, "sets $1 to "));
  const text = clauses.join("; ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function Follows({ substance, option }: { substance: Substance; option: string }) {
  const next = substance.follows.find((each) => each.option === option)?.pending;
  if (!next) return null;
  return <span className="quiet">{next.kind === "nothing" ? "Then the run is complete" : `Then: ${visible(next.title)}`}</span>;
}

/** What the agent wrote, marked as the agent's: a person must not take it for the workflow's words. */
function Report({ substance, question }: { substance: Substance; question: WaitingQuestion }) {
  const { handedIn, gaps, checks, shortened } = substance;
  return (
    <>
      {checks.length > 0 && (
        <section className="open-gaps" aria-label="Checks before this question">
          <h3>Checks</h3>
          <Checks checks={checks} />
        </section>
      )}
      {gaps.length > 0 && (
        <section className="open-gaps" aria-label="Open gaps">
          <h3>Open gaps</h3>
          <ul>
            {gaps.map((gap) => (
              <li key={gap.number}>
                <span className={`badge ${gap.severity === "critical" ? "blocked" : gap.severity === "warning" ? "gaps" : "quiet"}`}>{gap.severity}</span> {visible(gap.summary)}
              </li>
            ))}
          </ul>
        </section>
      )}
      {handedIn ? (
        <section className="handed-in" aria-label="What the agent handed in">
          <h3>
            The agent's report <span className="badge quiet">written by the agent</span>
          </h3>
          {handedIn.artifacts.map((artifact, index) => (
            <Artifact key={index} artifact={artifact} />
          ))}
          {handedIn.notes.map((text, index) => (
            <Markdown key={index} text={text} />
          ))}
          {shortened && (
            <p>
              The report is longer. <Link to={`/console/sessions/${question.ref}`}>Read all of it in the session</Link>
            </p>
          )}
        </section>
      ) : (
        <p className="quiet">The agent handed in nothing before this question.</p>
      )}
    </>
  );
}
