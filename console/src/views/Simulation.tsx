import { useLayoutEffect } from "react";
import { usePage } from "../api";
import { Markdown, visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { SimulatedItem, SimulationPage } from "../types";
import { Empty, ErrorBox, Json, Skeleton, StatusBadge } from "../ui";
import { isTyping } from "./Inbox";

/** A workflow tried out by clicking answers; the answers are in the address, and nothing is stored. */
export function Simulation({ id }: { id: string }) {
  const route = useRoute();
  const { data, error } = usePage<SimulationPage>(`workflows/${encodeURIComponent(id)}/simulate`, { answers: route.query.get("answers") ?? undefined }, "");
  const after = (number: number) => withQuery(route, { answers: [data?.answers, number].filter(Boolean).join(".") });
  const before = withQuery(route, { answers: data?.answers.split(".").slice(0, -1).join(".") || null });

  // In the same moment as the choices appear: a key that is pressed as soon as they are seen counts.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event) || event.repeat || !data) return;
      if (event.key === "Backspace" && data.answers) go(before);
      else if (data.choices[Number(event.key) - 1]) go(after(Number(event.key)));
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });

  if (error) return <ErrorBox error={error} />;
  if (!data) return <Skeleton rows={6} />;
  const current = data.items.at(-1);
  return (
    <>
      <header className="page-head">
        <p className="crumbs">
          <Link to="/console/workflows">Workflows</Link> / <Link to={`/console/workflows/${id}`}>{data.workflowId}</Link> / simulate
        </p>
        <h1>Simulate {visible(data.name)}</h1>
        <p className="quiet">Choose what happens, by mouse or keys 1–9; Backspace goes back. Agents are trusted to do their work, and nothing is stored.</p>
        <p className="row">
          {data.answers && (
            <>
              <Link className="button small" to={before}>
                Back
              </Link>
              <Link className="button small" to={withQuery(route, { answers: null })}>
                Start again
              </Link>
            </>
          )}
        </p>
      </header>
      <div className="simulation">
        <ol className="story" aria-label="What has happened">
          {data.items.slice(0, data.ended ? undefined : -1).map((item, index) => (
            <Past key={index} item={item} />
          ))}
        </ol>
        {!data.ended && (
          <section className="question current" aria-label="What is next">
            <header>
              <h2>{current ? visible(current.pending.title || current.id) : "Before the start"}</h2>
              {current && (
                <p className="quiet">
                  {KIND[current.pending.kind] ?? current.pending.kind} <code>{visible(current.id)}</code>
                  {current.activity && ` in ${current.activity}`}
                </p>
              )}
            </header>
            {current && <Marks item={current} />}
            {current?.prompt && <Markdown text={current.prompt} />}
            <div className="options">
              {data.choices.map((choice, index) => (
                <Link key={index} className="option" to={after(index + 1)} aria-keyshortcuts={index < 9 ? String(index + 1) : undefined}>
                  {index < 9 && <kbd aria-hidden="true">{index + 1}</kbd>}
                  <span>
                    <strong>{visible(choice.label)}</strong>
                    {choice.effect && <span className="quiet">Sets {visible(choice.effect)}</span>}
                    <span className="quiet">{choice.follows.kind === "nothing" ? "Then the run is complete" : `Then: ${visible(choice.follows.title)}`}</span>
                  </span>
                </Link>
              ))}
            </div>
          </section>
        )}
        {data.ended === "stuck" && (
          <Empty title="Nothing can be answered here" command={`interlock simulate ${data.workflowId}`}>
            <p>The run would wait for something that a simulation cannot give.</p>
          </Empty>
        )}
        {data.ended && data.ended !== "stuck" && (
          <p className="notice" role="status">
            The run has ended: <StatusBadge status={data.ended} />
          </p>
        )}
        {Object.keys(data.variables).length > 0 && (
          <details>
            <summary>Variables</summary>
            <Json value={data.variables} />
          </details>
        )}
      </div>
    </>
  );
}

const KIND: Record<string, string> = { step: "step", decision: "question", input: "input", choice: "choice" };

function Past({ item }: { item: SimulatedItem }) {
  return (
    <li className={`step ${item.pending.kind}`}>
      <header>
        <h2>{visible(item.pending.kind === "nothing" ? "End" : item.pending.title || item.id)}</h2>
        <span className="quiet">
          <code>{visible(item.id)}</code>
          {item.chosen && (
            <>
              {" "}
              <span className="badge complete">{visible(item.chosen)}</span>
            </>
          )}
        </span>
      </header>
      <Marks item={item} />
    </li>
  );
}

function Marks({ item }: { item: SimulatedItem }) {
  if (item.marks.length === 0) return null;
  return (
    <ul className="marks">
      {item.marks.map((mark, index) => (
        <li key={index} className={`${mark.kind} ${mark.weight}`}>
          {visible(mark.text)}
        </li>
      ))}
    </ul>
  );
}
