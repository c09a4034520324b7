import { useEffect, useState } from "react";
import { get, usePage } from "../api";
import { Artifact } from "../artifacts";
import { useCommands } from "../commands";
import { Markdown, visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { ComparedSide, ComparedStep, Comparison, OnlyHere, RunsPage, StoryStep } from "../types";
import { duration, Empty, ErrorBox, Skeleton, StatusBadge, Time } from "../ui";
import { Decision } from "./Story";

const NAMES: Record<string, string> = { notes: "notes differ", artifacts: "artifacts differ", decisions: "decisions differ", only_left: "only left", only_right: "only right" };
const ASKED = ["left", "leftRun", "leftNode", "right", "rightRun", "rightNode"];

export function Compare() {
  const route = useRoute();
  const wanted = Object.fromEntries(ASKED.map((name) => [name, route.query.get(name) ?? ""]));
  return (
    <>
      <header className="page-head">
        <h1>Compare</h1>
        <p className="quiet">Two branches of a run, or two runs of a workflow, step by step.</p>
      </header>
      <Choice left={wanted.left ?? ""} right={wanted.right ?? ""} />
      {wanted.left && wanted.right && <Compared query={wanted} />}
    </>
  );
}

const compareTo = (left: string, right: string) => `/console/compare?${new URLSearchParams([["left", left], ["right", right]].filter(([, ref]) => ref) as [string, string][]).toString()}`;

/** Two sessions to compare, chosen from the newest by their titles; until both are chosen the list is shown. */
function Choice({ left, right }: { left: string; right: string }) {
  const [newest, setNewest] = useState<RunsPage | null>(null);
  useEffect(() => void get<RunsPage>("runs", { limit: "50" }).then(setNewest, () => undefined), []);
  const lines = newest?.lines ?? [];
  const side = (name: "Left" | "Right", chosen: string, onChoose: (ref: string) => void) => (
    <label className="field grow">
      {name} session
      <select value={chosen} onChange={(event) => onChoose(event.target.value)}>
        <option value="">Choose a session</option>
        {chosen && !lines.some((line) => line.ref === chosen) && <option value={chosen}>{chosen}</option>}
        {lines.map((line) => (
          <option key={line.sessionId} value={line.ref}>
            {visible(line.title)} · {line.ref}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <div className="row compare-choice">
        {side("Left", left, (ref) => go(compareTo(ref, right)))}
        {side("Right", right, (ref) => go(compareTo(left, ref)))}
      </div>
      {newest && lines.length < 2 && (
        <Empty title="There is nothing to compare yet">
          <p>Comparing needs two sessions, or a run with a fork: open it and choose “Compare the branches”.</p>
        </Empty>
      )}
      {(!left || !right) && lines.length > 1 && (
        <section aria-label="Newest sessions">
          <h2>{left || right ? "Choose the session to compare it with" : "Choose the first of two sessions"}</h2>
          <ol className="lines">
            {lines
              .filter((line) => line.ref !== left && line.ref !== right)
              .slice(0, 20)
              .map((line) => (
                <li key={line.sessionId}>
                  <Link to={left ? compareTo(left, line.ref) : compareTo(line.ref, right)}>
                    <span className="line-head">
                      <strong>{visible(line.title)}</strong>
                      <span className="quiet">
                        <Time at={line.updatedAt} />
                      </span>
                    </span>
                    <span className="line-foot quiet">
                      <StatusBadge status={line.status} /> <code>{line.workflowId}</code> <code>{line.ref}</code> {line.steps} steps
                    </span>
                  </Link>
                </li>
              ))}
          </ol>
        </section>
      )}
    </>
  );
}

function Compared({ query }: { query: Record<string, string> }) {
  const route = useRoute();
  const { data, error } = usePage<Comparison>("compare", query);
  const swapped = withQuery(
    route,
    Object.fromEntries(ASKED.map((name) => [name, query[name.startsWith("left") ? name.replace("left", "right") : name.replace("right", "left")] || null])),
  );
  const isEverything = route.query.get("same") === "1";
  const onlyDiffering = withQuery(route, { same: isEverything ? null : "1" });
  useCommands([
    { label: "Swap the sides", hint: "action", run: () => go(swapped) },
    { label: isEverything ? "Show only what differs" : "Show equal steps too", hint: "action", run: () => go(onlyDiffering) },
  ]);
  if (error) return <ErrorBox error={error} />;
  if (!data) return <Skeleton />;
  const shared = data.steps.filter((step) => step.shared).length;
  const equal = data.steps.filter((step) => !step.shared && step.differences.length === 0).length;
  const shown = data.steps.filter((step) => isEverything || (!step.shared && step.differences.length > 0));
  return (
    <>
      <div className="compare-head">
        <Side side={data.left} name="left" />
        <Side side={data.right} name="right" />
      </div>
      <div className="filters">
        <span className="quiet">
          {shared > 0 && `${shared === 1 ? "1 step is" : `${shared} steps are`} shared by both branches. `}
          {equal > 0 && `${equal === 1 ? "1 step is" : `${equal} steps are`} equal. `}
          {data.steps.length - shared - equal} differ.
        </span>
        {shared + equal > 0 && (
          <Link className="button small" to={onlyDiffering}>
            {isEverything ? "Show only what differs" : "Show equal steps too"}
          </Link>
        )}
        <Link className="button small" to={swapped}>
          Swap the sides
        </Link>
      </div>
      {shown.length === 0 && <Empty title="Nothing differs" />}
      <ol className="compare">
        {shown.map((step, index) => (
          <Row key={index} step={step} />
        ))}
      </ol>
    </>
  );
}

function Row({ step }: { step: ComparedStep }) {
  const told = step.left ?? step.right;
  return (
    <li>
      <header>
        <h3>{visible(told?.title || told?.id || "")}</h3>
        <code className="quiet">{visible(told?.id ?? "")}</code>
        {step.differences.map((difference) => (
          <span key={difference} className="badge gaps">
            {NAMES[difference]}
          </span>
        ))}
        {step.differences.length === 0 && <span className="badge quiet">{step.shared ? "shared" : "same"}</span>}
      </header>
      <div className="pair">
        <Half step={step.left} only={step.onlyLeft} label="Left" />
        <Half step={step.right} only={step.onlyRight} label="Right" />
      </div>
    </li>
  );
}

function Side({ side, name }: { side: ComparedSide; name: "left" | "right" }) {
  const route = useRoute();
  const branch = side.choices.some((each) => each.tip === side.tip);
  return (
    <section aria-label={`${name} side`}>
      <h2>
        <Link to={`/console/sessions/${side.ref}?run=${side.runId}&node=${side.tip}`}>{visible(side.title)}</Link>
      </h2>
      <p className="facts">
        <StatusBadge status={side.status} />
        <code>{side.workflowId}</code>
      </p>
      <label className="field">
        {name === "left" ? "Left branch" : "Right branch"}
        <select
          value={side.tip}
          onChange={(event) => {
            const chosen = side.choices.find((each) => each.tip === Number(event.target.value));
            if (chosen) go(withQuery(route, { [`${name}Run`]: chosen.runId, [`${name}Node`]: String(chosen.tip) }));
          }}
        >
          {!branch && <option value={side.tip}>up to node {side.tip}</option>}
          {side.choices.map((each) => (
            <option key={each.tip} value={each.tip}>
              {visible(each.label)} (tip {each.tip})
            </option>
          ))}
        </select>
      </label>
      <dl className="figures">
        <div>
          <dt>Working</dt>
          <dd>{duration(side.working)}</dd>
        </div>
        <div>
          <dt>Waiting</dt>
          <dd>{duration(side.waiting)}</dd>
        </div>
        <div>
          <dt>Gaps</dt>
          <dd>{side.gaps}</dd>
        </div>
        <div>
          <dt>Blocked</dt>
          <dd>{side.blocked}</dd>
        </div>
      </dl>
    </section>
  );
}

function Half({ step, only, label }: { step: StoryStep | null; only: OnlyHere; label: string }) {
  if (!step) return <div className="absent quiet">{label}: not on this side</div>;
  const differs = (places: number[], place: number) => (places.includes(place) ? "differs" : undefined);
  return (
    <div>
      <p className="quiet">
        {label} · node {step.node} · {step.doneAt === null ? "open" : duration(step.doneAt - step.askedAt)}
      </p>
      {step.handedIn?.notes.map((text, index) => (
        <div key={index} className={differs(only.notes, index)}>
          <Markdown text={text} />
        </div>
      ))}
      {step.handedIn?.artifacts.map((artifact, index) => (
        <div key={index} className={differs(only.artifacts, index)}>
          <Artifact artifact={artifact} />
        </div>
      ))}
      {step.decisions.map((decision, index) => (
        <Decision key={index} decision={decision} differs={only.decisions.includes(index)} />
      ))}
      {step.marks.some((mark) => mark.kind === "gap") && (
        <ul className="marks">
          {step.marks
            .filter((mark) => mark.kind === "gap")
            .map((mark, index) => (
              <li key={index} className={`gap ${mark.weight}`}>
                <strong>Gap</strong> {visible(mark.text)}
              </li>
            ))}
        </ul>
      )}
    </div>
  );
}
