import { usePage } from "../api";
import { Artifact } from "../artifacts";
import { Markdown, visible } from "../markdown";
import { go, useRoute } from "../router";
import type { ComparedSide, Comparison, StoryStep } from "../types";
import { Empty, ErrorBox, Skeleton, duration } from "../ui";

const NAMES: Record<string, string> = { notes: "notes differ", artifacts: "artifacts differ", decisions: "decisions differ", only_left: "only left", only_right: "only right" };

export function Compare() {
  const { query } = useRoute();
  const wanted = Object.fromEntries(query);
  const isAsked = Boolean(wanted.left && wanted.right);
  return (
    <>
      <header className="page-head">
        <h1>Compare</h1>
        <p className="quiet">Two branches of a run, or two runs of a workflow, step by step.</p>
      </header>
      <form
        className="filters"
        key={query.toString()}
        onSubmit={(event) => {
          event.preventDefault();
          const fields = new FormData(event.currentTarget);
          const pairs = [...fields.entries()].filter((pair): pair is [string, string] => typeof pair[1] === "string" && pair[1] !== "");
          go(`/console/compare?${new URLSearchParams(pairs).toString()}`);
        }}
      >
        <label className="field">
          Left session
          <input name="left" defaultValue={wanted.left} required autoComplete="off" />
        </label>
        <label className="field">
          Right session
          <input name="right" defaultValue={wanted.right} required autoComplete="off" />
        </label>
        <button className="button primary" type="submit">
          Compare
        </button>
      </form>
      {isAsked ? (
        <Compared query={wanted} />
      ) : (
        <Empty title="Choose two sessions">
          <p>Enter their short ids, or open a run with a fork and choose “Compare the branches”.</p>
        </Empty>
      )}
    </>
  );
}

function Compared({ query }: { query: Record<string, string> }) {
  const { data, error } = usePage<Comparison>("compare", query);
  if (error) return <ErrorBox error={error} />;
  if (!data) return <Skeleton />;
  const shared = data.steps.filter((step) => step.shared).length;
  return (
    <>
      <div className="compare-head">
        <Side side={data.left} name="Left" />
        <Side side={data.right} name="Right" />
      </div>
      {shared > 0 && <p className="quiet">{shared === 1 ? "The first step is" : `${shared} steps are`} shared by both branches.</p>}
      <ol className="compare">
        {data.steps
          .filter((step) => !step.shared)
          .map((step, index) => (
            <li key={index}>
              <header>
                <h3>{visible((step.left ?? step.right)?.title || (step.left ?? step.right)?.id || "")}</h3>
                {step.differences.map((difference) => (
                  <span key={difference} className="badge gaps">
                    {NAMES[difference]}
                  </span>
                ))}
                {step.differences.length === 0 && <span className="badge quiet">same</span>}
              </header>
              <div className="pair">
                <Half step={step.left} label="Left" />
                <Half step={step.right} label="Right" />
              </div>
            </li>
          ))}
      </ol>
    </>
  );
}

function Side({ side, name }: { side: ComparedSide; name: string }) {
  return (
    <div>
      <h2>
        <span className="quiet">{name}</span> {visible(side.title)}
      </h2>
      <p className="quiet">
        tip {side.tip} · {duration(side.milliseconds)} · {side.gaps} gaps · {side.blocked} blocked attempts
      </p>
    </div>
  );
}

function Half({ step, label }: { step: StoryStep | null; label: string }) {
  if (!step) return <div className="absent quiet">{label}: not on this side</div>;
  return (
    <div>
      <p className="quiet">
        {label} · node {step.node} · {step.doneAt === null ? "open" : duration(step.doneAt - step.askedAt)}
      </p>
      {step.handedIn?.notes.map((text, index) => <Markdown key={index} text={text} />)}
      {step.handedIn?.artifacts.map((artifact, index) => <Artifact key={index} artifact={artifact} />)}
      {step.decisions.map((decision, index) => (
        <p key={index} className="decision">
          <span className="badge complete">{visible(decision.option || decision.how)}</span> {visible(decision.gate)}, by {decision.channel}
          {decision.note && <q>{visible(decision.note)}</q>}
        </p>
      ))}
    </div>
  );
}
