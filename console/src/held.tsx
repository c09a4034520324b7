// Answers are held for a few seconds before they are sent, so that a slip can be taken back. They outlive the view that
// they were given in; leaving the page sends them. Nothing is called recorded before the server has said so.
import { useEffect, useSyncExternalStore } from "react";
import { act, actOnLeaving, prepareToAct, Refused } from "./api";
import { visible } from "./markdown";
import { go } from "./router";
import type { ActionDone, DecideRequest } from "./types";

const HOLD_MS = 5000;
const SHOWN_MS = 6000;
const MOST_SHOWN = 4;

export interface HeldQuestion {
  place: string;
  name: string;
  title: string;
  request: DecideRequest;
}

export interface HeldAnswer {
  number: number;
  label: string;
  note: string;
  questions: HeldQuestion[];
  state: "held" | "sending" | "recorded" | "refused";
  said: string;
  refused: HeldQuestion[];
}

/** Notes that were not sent yet, by the place of their question: they outlive a changed question and an undo. */
export const drafts = new Map<string, string>();

let answers: readonly HeldAnswer[] = [];
let next = 1;
const timers = new Map<number, number>();
const listeners = new Set<() => void>();

function changed(to: readonly HeldAnswer[]): void {
  answers = to;
  for (const listener of listeners) listener();
}

const set = (number: number, changes: Partial<HeldAnswer>) => changed(answers.map((each) => (each.number === number ? { ...each, ...changes } : each)));
const drop = (number: number) => changed(answers.filter((each) => each.number !== number));

export function hold(label: string, note: string, questions: HeldQuestion[]): void {
  const number = next++;
  prepareToAct();
  changed([...answers, { number, label, note, questions, state: "held", said: "", refused: [] }]);
  timers.set(number, window.setTimeout(() => void send(number), HOLD_MS));
}

/** Take back an answer that was not sent yet, the last one unless another is meant; its question can be answered again. */
export function undo(number = answers.findLast((each) => each.state === "held")?.number): HeldAnswer | null {
  const answer = answers.find((each) => each.number === number && each.state === "held");
  if (!answer) return null;
  window.clearTimeout(timers.get(answer.number));
  drop(answer.number);
  return answer;
}

async function send(number: number): Promise<void> {
  const answer = answers.find((each) => each.number === number && each.state === "held");
  if (!answer) return;
  window.clearTimeout(timers.get(number));
  set(number, { state: "sending" });
  const refused: HeldQuestion[] = [];
  let said = "";
  for (const question of answer.questions) {
    try {
      const done = await act<ActionDone>("decide", question.request);
      if (!said) said = done.message;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refused.push(question);
      if (refused.length === 1) said = `Not recorded: ${error.error.message} ${error.error.nextAction}`;
    }
  }
  const recorded = answer.questions.length - refused.length;
  if (answer.questions.length > 1) said = refused.length ? `${recorded} recorded, ${refused.length} not. ${said}` : `Recorded for ${recorded} questions.`;
  for (const question of answer.questions) if (!refused.includes(question)) drafts.delete(question.place);
  set(number, { state: refused.length ? "refused" : "recorded", said, refused });
  if (!refused.length) window.setTimeout(() => drop(number), SHOWN_MS);
}

function leave(): void {
  for (const answer of answers.filter((each) => each.state === "held")) {
    window.clearTimeout(timers.get(answer.number));
    for (const question of answer.questions) actOnLeaving("decide", question.request);
    drop(answer.number);
  }
}

export function useHeldAnswers(): readonly HeldAnswer[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => answers,
  );
}

export function showQuestion({ place, request }: HeldQuestion): void {
  go(`/console/inbox?session=${request.sessionId}&place=${place}`);
}

/** What was answered last: what is still held, with undo, and what the server said about the rest. */
export function HeldAnswers() {
  const held = useHeldAnswers();
  useEffect(() => {
    window.addEventListener("pagehide", leave);
    return () => window.removeEventListener("pagehide", leave);
  }, []);
  return (
    <div className="held" role="log" aria-label="Your answers">
      {held.slice(-MOST_SHOWN).map((answer) => {
        const [first] = answer.questions;
        return (
          <div key={answer.number} className={`held-answer ${answer.state}`}>
            <p>
              <strong>{answer.questions.length > 1 ? `${answer.questions.length} equal questions` : visible(first?.name ?? "")}</strong>
              {answer.questions.length === 1 && <span className="quiet"> {visible(first?.title ?? "")}</span>}: <strong>{visible(answer.label)}</strong>
              <span className="quiet">
                {answer.state === "held" && " · not sent yet"}
                {answer.state === "sending" && " · sending …"}
                {answer.said && ` · ${visible(answer.said)}`}
              </span>
            </p>
            {answer.state === "held" && (
              <>
                <button
                  type="button"
                  className="button small"
                  onClick={() => {
                    const undone = undo(answer.number);
                    if (undone?.questions[0]) showQuestion(undone.questions[0]);
                  }}
                >
                  Undo
                </button>
                <button type="button" className="button small" onClick={() => void send(answer.number)}>
                  Send now
                </button>
                <span className="fuse" style={{ animationDuration: `${HOLD_MS}ms` }} aria-hidden="true" />
              </>
            )}
            {answer.state === "refused" && (
              <>
                {answer.refused[0] && (
                  <button
                    type="button"
                    className="button small"
                    onClick={() => {
                      drop(answer.number);
                      if (answer.refused[0]) showQuestion(answer.refused[0]);
                    }}
                  >
                    Show the question
                  </button>
                )}
                <button type="button" className="button small" onClick={() => drop(answer.number)}>
                  Dismiss
                </button>
              </>
            )}
          </div>
        );
      })}
    </div>
  );
}
