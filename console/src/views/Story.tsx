import { useEffect } from "react";
import { Artifact } from "../artifacts";
import { Checks } from "../checks";
import { Markdown, visible } from "../markdown";
import { Link, useRoute, withQuery } from "../router";
import type { Fork, HandedIn, RunStory, StoryDecision, StoryStep } from "../types";
import { duration, Icon, Time } from "../ui";

interface StoryProps {
  story: RunStory;
  forks: Fork[];
  selected: number | null;
  onFork: (node: number) => void;
}

export function Story({ story, forks, selected, onFork }: StoryProps) {
  useEffect(() => {
    if (selected !== null) document.getElementById(`node-${selected}`)?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  return (
    <>
      {story.omitted > 0 && <p className="quiet">{story.omitted} earlier nodes are not shown; export the session to read them.</p>}
      <ol className="story">
        {story.steps.map((step) => (
          <Step key={step.node} step={step} forks={forks.filter((fork) => fork.node === step.node)} isSelected={step.node === selected} onFork={onFork} />
        ))}
      </ol>
    </>
  );
}

function Step({ step, forks, isSelected, onFork }: { step: StoryStep; forks: Fork[]; isSelected: boolean; onFork: (node: number) => void }) {
  const isOpen = step.doneAt === null;
  const body = <StepBody step={step} isOpen={isOpen} />;
  return (
    <li className={`step kind-${step.kind} ${isOpen ? "open" : ""} ${isSelected ? "selected" : ""}`} id={`node-${step.node}`} aria-current={isSelected ? "true" : undefined}>
      <StepHead step={step} isOpen={isOpen} onFork={onFork} />
      {step.probe && !isOpen ? (
        <details>
          <summary>A probe that tried a capability</summary>
          {body}
        </details>
      ) : (
        body
      )}
      {forks.map((fork) => (
        <ForkLine key={fork.child} fork={fork} />
      ))}
    </li>
  );
}

function StepHead({ step, isOpen, onFork }: { step: StoryStep; isOpen: boolean; onFork: (node: number) => void }) {
  const route = useRoute();
  return (
    <header>
      <h3>
        <Link to={withQuery(route, { at: String(step.node) })} title="Show this node in the inspector">
          {visible(step.title || step.id)}
        </Link>
      </h3>
      <span className="quiet">
        <code>{visible(step.id)}</code> · node {step.node} ·{" "}
        {step.doneAt !== null ? (
          <>
            <Time at={step.doneAt} /> · {duration(step.doneAt - step.askedAt)}
          </>
        ) : (
          <>
            {step.kind === "decision" || step.kind === "input" ? "waiting since" : "open since"} <Time at={step.askedAt} />
          </>
        )}
      </span>
      {!isOpen && (
        <button type="button" className="icon-button" aria-label={`Fork from node ${step.node}`} title="Fork from here" onClick={() => onFork(step.node)}>
          <Icon name="fork" />
        </button>
      )}
    </header>
  );
}

function StepBody({ step, isOpen }: { step: StoryStep; isOpen: boolean }) {
  return (
    <>
      {step.prompt && (
        <details className="prompt" open={isOpen}>
          <summary>{step.kind === "decision" ? "Question" : "Prompt"}</summary>
          <Markdown text={step.prompt} />
        </details>
      )}
      {step.blocked.map((attempt, index) => (
        <div key={index} className="blocked-attempt">
          <p>
            <span className="badge blocked">Blocked</span> <Time at={attempt.at} />
          </p>
          <ul>
            {withoutChecks(attempt).map((blocker, at) => (
              <li key={at}>
                <code>{blocker.code}</code> {visible(blocker.message)} <span className="quiet">{pointer(blocker.pointer)}</span>
              </li>
            ))}
          </ul>
          <Checks checks={attempt.checks} />
          <Output output={attempt} />
        </div>
      ))}
      <Checks checks={step.checks} />
      {step.handedIn && <Output output={withoutAnswers(step.handedIn, step)} />}
      {step.noted.length > 0 && (
        <details className="noted">
          <summary>{step.noted.length === 1 ? "1 note was saved here" : `${step.noted.length} notes were saved here`}</summary>
          {step.noted.map((note, index) => (
            <div key={index}>
              <p className="quiet">
                <Time at={note.at} />
              </p>
              <Output output={note} />
            </div>
          ))}
        </details>
      )}
      {toldOnce(step.decisions).map((decision, index) => (
        <Decision key={index} decision={{ ...decision, question: decision.question === step.prompt ? "" : decision.question }} />
      ))}
      {step.marks.length > 0 && (
        <ul className="marks" aria-label="What happened here">
          {step.marks.map((mark, index) => (
            <li key={index} className={`${mark.kind} ${mark.weight}`}>
              {MARKS[mark.kind] && <strong>{MARKS[mark.kind]}</strong>} {visible(mark.text)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** A blocker that only tells what came of a check is told with the check. */
function withoutChecks({ blockers, checks }: HandedIn): HandedIn["blockers"] {
  return blockers.filter((blocker) => !checks.some((check) => blocker.message.startsWith(`Check '${check.id}' `)));
}

/** A decision that was recorded before the agent used it is told with its use. */
function toldOnce(decisions: StoryDecision[]): StoryDecision[] {
  const isUsed = (made: StoryDecision) => decisions.some((other) => other.how !== "recorded" && other.gate === made.gate && other.option === made.option);
  return decisions.filter((made) => made.how !== "recorded" || !isUsed(made));
}

/** An artifact that only carries an answer is told as the decision that it became. */
function withoutAnswers(output: HandedIn, step: StoryStep): HandedIn {
  return step.decisions.length === 0 ? output : { ...output, artifacts: output.artifacts.filter(({ kind }) => kind !== "wr.decision") };
}

const MARKS: Record<string, string> = { gap: "Gap", divergence: "Divergence", capability: "Capability", mode: "Mode" };

export function Decision({ decision, differs = false }: { decision: StoryDecision; differs?: boolean }) {
  return (
    <div className={differs ? "decision differs" : "decision"}>
      <span className="badge complete">{visible(decision.option || decision.how.replaceAll("_", " "))}</span>
      <span>
        {visible(decision.gate)}, by {decision.channel}
        {decision.strength !== decision.channel && decision.strength !== "none" && ` (${decision.strength})`}
        {decision.client && ` (${visible(decision.client)})`}, <Time at={decision.at} />
      </span>
      {decision.note && <q>{visible(decision.note)}</q>}
      {decision.question && (
        <details>
          <summary>What was asked</summary>
          <Markdown text={decision.question} />
        </details>
      )}
    </div>
  );
}

function ForkLine({ fork }: { fork: Fork }) {
  const route = useRoute();
  const to = withQuery(route, { node: String(fork.branch), at: String(fork.node) });
  return (
    <p className="fork">
      <Icon name="fork" />
      <span>
        {fork.cause === "rewound" ? "The chat was rewound to here; another branch went on with " : "The first branch went on from here with "}
        <Link to={to}>{visible(fork.label)}</Link>
      </span>
    </p>
  );
}

function pointer(value: Record<string, unknown> | object): string {
  const { kind, ...rest } = value as Record<string, unknown>;
  return `${String(kind ?? "").replaceAll("_", " ")}: ${Object.values(rest).join(", ")}`;
}

export function Output({ output }: { output: HandedIn }) {
  return (
    <>
      {output.notes.map((text, index) => (
        <Markdown key={index} text={text} />
      ))}
      {output.artifacts.map((artifact, index) => (
        <Artifact key={index} artifact={artifact} />
      ))}
    </>
  );
}
