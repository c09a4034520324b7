import { usePage } from "../api";
import { Markdown, visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { DiagnosticLine, WorkflowItem, WorkflowPage, WorkflowsPage } from "../types";
import { Command, CopyButton, Empty, ErrorBox, Json, Skeleton, Time } from "../ui";
import { Graph } from "./Graph";
import { RunTable } from "./Runs";

export function Workflows() {
  const { data, error } = usePage<WorkflowsPage>("workflows", {}, "");
  const route = useRoute();
  const text = route.query.get("q") ?? "";
  const wanted = text.toLowerCase();
  const shown = data?.workflows.filter((each) => `${each.id} ${each.name} ${each.description}`.toLowerCase().includes(wanted)) ?? [];
  return (
    <>
      <header className="page-head">
        <h1>Workflows</h1>
        <p className="quiet">
          What an agent can be asked to follow here. <Link to="/console/builtins">What is built in</Link> for those who write one.
        </p>
      </header>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={10} />}
      {data && (
        <div className="filters">
          <input type="search" aria-label="Filter workflows" placeholder="Name or description" value={text} onChange={(event) => go(withQuery(route, { q: event.target.value || null }), true)} />
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
            <p className="quiet facts">
              <span>{size(each.size, each.tokens)}</span>
              <code title={each.hash}>{each.hash.slice(0, 19)}…</code>
            </p>
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

function size(bytes: number, tokens: number): string {
  return `${(bytes / 1000).toFixed(1)} kB, about ${tokens.toLocaleString("en")} tokens`;
}

export function Workflow({ id }: { id: string }) {
  const { data, error } = usePage<WorkflowPage>(`workflows/${encodeURIComponent(id)}`, {}, "");
  if (error)
    return (
      <>
        <header className="page-head">
          <p className="crumbs">
            <Link to="/console/workflows">Workflows</Link> / <code>{visible(id)}</code>
          </p>
          <h1>Workflow</h1>
        </header>
        <ErrorBox error={error} />
      </>
    );
  if (!data) return <Skeleton rows={8} />;
  const links = (names: string[]) =>
    names.map((name) => (
      <li key={name}>
        {name.startsWith("wr.templates.") ? <Link to={`/console/builtins?q=${name}`}>{name}</Link> : <Link to={`/console/workflows/${name}`}>{name}</Link>}
      </li>
    ));
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
          <span>{size(data.size, data.tokens)}</span>
          <code title={data.hash}>{data.hash.slice(0, 19)}…</code>
        </p>
        <div className="row">
          <Link className="button primary" to={`/console/workflows/${encodeURIComponent(data.id)}/simulate`}>
            Simulate
          </Link>
          {data.items.some((item) => item.checks.length > 0) && (
            <Link className="button" to={`/console/workflows/${encodeURIComponent(data.id)}/checks`}>
              Checks that the server runs
            </Link>
          )}
          <Command text={`interlock play ${data.id}`} />
        </div>
      </header>
      {data.shadowed.length > 0 && (
        <section>
          <h2>Shadowed copies</h2>
          <ul className="findings">
            {data.shadowed.map((copy, index) => (
              <li key={index}>{visible(copy)}</li>
            ))}
          </ul>
        </section>
      )}
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
        <h2>Steps, gates and loops</h2>
        <ol className="items">
          {data.items.map((item, index) => (
            <Item key={index} item={item} showsActivity={data.items[index - 1]?.activity !== item.activity} />
          ))}
        </ol>
      </section>
      {data.contracts.length > 0 && (
        <section>
          <h2>Contracts</h2>
          <ul className="findings">
            {data.contracts.map((contract) => (
              <li key={contract.ref}>
                <strong>
                  {contract.ref.startsWith("wr.") ? <Link to={`/console/builtins?q=${contract.ref}`}>{contract.ref}</Link> : <code>{visible(contract.ref)}</code>}
                </strong>
                <span className="quiet">
                  {contract.required ? "required" : "optional"} artifact <code>{visible(contract.artifact)}</code> of {contract.steps.map(visible).join(", ")}
                </span>
                {contract.example !== null && (
                  <details>
                    <summary>Example</summary>
                    <Json value={contract.example} />
                  </details>
                )}
              </li>
            ))}
          </ul>
        </section>
      )}
      {data.variables.length > 0 && (
        <section>
          <h2>Variables</h2>
          <dl className="wide">
            {data.variables.map((variable) => (
              <div key={variable.name}>
                <dt>
                  <code>{variable.name}</code>{" "}
                  <span className="quiet">
                    {variable.type}
                    {variable.required && ", required"}
                    {variable.default && `, default ${visible(variable.default)}`}
                  </span>
                </dt>
                <dd>{visible(variable.description)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      <section>
        <h2>Who uses it</h2>
        {data.users.length > 1 && (
          <ul className="chips" aria-label="People, by their newest sessions">
            {data.users.map((user) => (
              <li key={user.name}>
                <strong>{visible(user.name)}</strong> {user.sessions === 1 ? "1 session" : `${user.sessions} sessions`}, last active <Time at={user.updatedAt} />
              </li>
            ))}
          </ul>
        )}
        {data.usedBy.length ? <ul className="chips">{links(data.usedBy)}</ul> : <p className="quiet">No other workflow names it.</p>}
        {data.uses.length > 0 && (
          <>
            <h3>What it uses</h3>
            <ul className="chips">{links(data.uses)}</ul>
          </>
        )}
      </section>
      <section>
        <h2>Last runs</h2>
        {data.runs.length ? (
          <>
            <RunTable lines={data.runs} />
            <p>
              <Link to={`/console/runs?workflow=${encodeURIComponent(data.id)}`}>All its runs</Link>
            </p>
          </>
        ) : (
          <p className="quiet">Nobody has used this workflow yet.</p>
        )}
      </section>
    </>
  );
}

const LOOK: Record<string, string> = { step: "quiet", gate: "gaps", loop: "running" };

function Item({ item, showsActivity }: { item: WorkflowItem; showsActivity: boolean }) {
  const checks = item.checks.length > 0 ? `the check ${item.checks.join(", ")}` : "";
  const wants = [item.contracts.join(", "), checks, item.confirms ? "confirmation" : ""].filter(Boolean).join("; ");
  return (
    <>
      {showsActivity && (
        <li className="activity">
          <h3>
            <code>{item.activity}</code>
          </h3>
        </li>
      )}
      <li className={`depth-${Math.min(item.depth, 3)}`}>
        <details>
          <summary>
            <span className={`badge ${LOOK[item.kind] ?? "quiet"}`}>{item.kind}</span> {visible(item.title)} <code className="quiet">{item.id}</code>
            {item.note && <span className="quiet"> {visible(item.note)}</span>}
            {wants && <span className="quiet"> asks for {visible(wants)}</span>}
          </summary>
          {item.text && <Markdown text={item.text} />}
          {item.options.length > 0 && (
            <ul>
              {item.options.map((option) => (
                <li key={option.id}>
                  <strong>{visible(option.label)}</strong> <code className="quiet">{option.id}</code> {visible(option.description)}
                  {option.effect && <span className="quiet"> sets {visible(option.effect)}</span>}
                </li>
              ))}
            </ul>
          )}
        </details>
      </li>
    </>
  );
}
