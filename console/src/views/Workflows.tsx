import { useState } from "react";
import { usePage } from "../api";
import { visible } from "../markdown";
import { Link } from "../router";
import type { DiagnosticLine, WorkflowPage, WorkflowsPage } from "../types";
import { Command, CopyButton, Empty, ErrorBox, Skeleton } from "../ui";
import { Graph } from "./Graph";
import { RunTable } from "./Runs";

export function Workflows() {
  const { data, error } = usePage<WorkflowsPage>("workflows", {}, "");
  const [text, setText] = useState("");
  const wanted = text.toLowerCase();
  const shown = data?.workflows.filter((each) => `${each.id} ${each.name} ${each.description}`.toLowerCase().includes(wanted)) ?? [];
  return (
    <>
      <header className="page-head">
        <h1>Workflows</h1>
        <p className="quiet">What an agent can be asked to follow here.</p>
      </header>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={10} />}
      {data && (
        <div className="filters">
          <input type="search" aria-label="Filter workflows" placeholder="Name or description" value={text} onChange={(event) => setText(event.target.value)} />
          <span className="quiet">{shown.length} workflows</span>
        </div>
      )}
      {data && shown.length === 0 && (
        <Empty title="No workflow matches" command="interlock init my-workflow">
          <p>Write one of your own:</p>
        </Empty>
      )}
      <ul className="cards">
        {shown.map((each) => (
          <li key={each.id}>
            <h2>
              <Link to={`/console/workflows/${each.id}`}>{visible(each.name)}</Link>
            </h2>
            <p className="quiet">
              <code>{each.id}</code> · {each.version} · {each.source}
            </p>
            <p>{visible(each.description)}</p>
            {(each.errors > 0 || each.warnings > 0 || each.shadows.length > 0) && (
              <p>
                {each.errors > 0 && <span className="badge blocked">{each.errors} errors</span>}
                {each.warnings > 0 && <span className="badge gaps">{each.warnings} warnings</span>}
                {each.shadows.length > 0 && <span className="badge quiet">shadows {each.shadows.join(", ")}</span>}
              </p>
            )}
          </li>
        ))}
      </ul>
      {data && data.diagnostics.some((each) => each.severity === "error") && (
        <section>
          <h2>Files that cannot be used</h2>
          <Diagnostics lines={data.diagnostics.filter((each) => each.severity === "error")} />
        </section>
      )}
    </>
  );
}

export function Diagnostics({ lines }: { lines: DiagnosticLine[] }) {
  return (
    <ul className="findings">
      {lines.map((line, index) => (
        <li key={index}>
          <span className={`badge ${line.severity === "error" ? "blocked" : "gaps"}`}>{line.code}</span>
          <strong>{visible(line.message)}</strong>
          {line.file && (
            <code>
              {visible(line.file)}:{line.line}
            </code>
          )}
          {line.nextAction && <p className="quiet">{visible(line.nextAction)}</p>}
        </li>
      ))}
    </ul>
  );
}

export function Workflow({ id }: { id: string }) {
  const { data, error } = usePage<WorkflowPage>(`workflows/${encodeURIComponent(id)}`, {}, "");
  if (error) return <ErrorBox error={error} />;
  if (!data) return <Skeleton rows={8} />;
  return (
    <>
      <header className="page-head">
        <p className="crumbs">
          <Link to="/console/workflows">Workflows</Link> / <code>{data.id}</code> <CopyButton text={data.id} label="Copy workflow id" />
        </p>
        <h1>{visible(data.name)}</h1>
        <p>{visible(data.description)}</p>
        <p className="facts quiet">
          <span>version {data.version}</span>
          <span>{data.source}</span>
          <span>
            {(data.size / 1024).toFixed(1)} kB, about {data.tokens.toLocaleString("en")} tokens
          </span>
          <code title={data.hash}>{data.hash.slice(0, 19)}…</code>
        </p>
        <Command text={`interlock play ${data.id}`} />
      </header>
      {data.diagnostics.length > 0 && (
        <section>
          <h2>Diagnostics</h2>
          <Diagnostics lines={data.diagnostics} />
        </section>
      )}
      <section>
        <h2>Graph</h2>
        <Graph graph={data.graph} />
      </section>
      <section>
        <h2>Steps and gates</h2>
        <div className="table-wrap">
          <table>
            <thead>
              <tr>
                <th scope="col">Item</th>
                <th scope="col">Kind</th>
                <th scope="col">Activity</th>
                <th scope="col">Asks for</th>
              </tr>
            </thead>
            <tbody>
              {data.items.map((item, index) => (
                <tr key={index}>
                  <th scope="row">
                    {visible(item.title)} <code className="quiet">{item.id}</code>
                  </th>
                  <td data-label="Kind">{item.kind}</td>
                  <td data-label="Activity">
                    <code>{item.activity}</code>
                  </td>
                  <td data-label="Asks for">{[item.contracts.join(", "), item.confirms ? "confirmation" : "", item.options.join(" / ")].filter(Boolean).join("; ") || "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      {data.variables.length > 0 && (
        <section>
          <h2>Variables</h2>
          <dl className="wide">
            {data.variables.map((variable) => (
              <div key={variable.name}>
                <dt>
                  <code>{variable.name}</code> <span className="quiet">{variable.type}{variable.required && ", required"}</span>
                </dt>
                <dd>{visible(variable.description)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      <section>
        <h2>Last runs</h2>
        {data.runs.length ? <RunTable lines={data.runs} /> : <p className="quiet">Nobody has used this workflow yet.</p>}
      </section>
    </>
  );
}
