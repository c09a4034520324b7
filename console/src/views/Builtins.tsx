import { usePage } from "../api";
import { Markdown, visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { BuiltinLine, BuiltinsPage } from "../types";
import { CopyButton, Empty, ErrorBox, Json, Skeleton } from "../ui";

const KINDS: [BuiltinLine["kind"], string][] = [
  ["contract", "Contracts"],
  ["template", "Templates"],
  ["feature", "Features"],
  ["capability", "Capabilities"],
  ["ref", "References"],
];

/** The catalogue of what any workflow may name, with text to insert. */
export function Builtins() {
  const route = useRoute();
  const { data, error } = usePage<BuiltinsPage>("builtins", {}, "");
  const text = route.query.get("q") ?? "";
  const kind = route.query.get("kind") ?? "";
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (data?.builtins ?? []).filter(
    (each) => (!kind || each.kind === kind) && words.every((word) => `${each.ref} ${each.title} ${each.details} ${each.artifact}`.toLowerCase().includes(word)),
  );
  return (
    <>
      <header className="page-head">
        <p className="crumbs">
          <Link to="/console/workflows">Workflows</Link> / built in
        </p>
        <h1>Built in</h1>
        <p className="quiet">What any workflow may name, with text to insert.</p>
      </header>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={10} />}
      {data && (
        <div className="filters">
          <nav className="segments" aria-label="Kind">
            <Link to={withQuery(route, { kind: null })} aria-current={kind ? undefined : "true"}>
              All
            </Link>
            {KINDS.map(([value, label]) => (
              <Link key={value} to={withQuery(route, { kind: value })} aria-current={kind === value ? "true" : undefined}>
                {label}
              </Link>
            ))}
          </nav>
          <input
            type="search"
            aria-label="Filter what is built in"
            placeholder="Name, field or text"
            value={text}
            onChange={(event) => go(withQuery(route, { q: event.target.value || null }), true)}
          />
          <span className="quiet">{shown.length} entries</span>
        </div>
      )}
      {data && shown.length === 0 && (
        <Empty title="Nothing matches">
          <p>
            <Link to="/console/builtins">Clear the filters</Link>
          </p>
        </Empty>
      )}
      <ul className="cards builtins">
        {shown.map((each) => (
          <li key={each.ref} id={each.ref}>
            <h2>{visible(each.title)}</h2>
            <p className="quiet">
              <code>{each.ref}</code> · {each.kind}
              {each.artifact && (
                <>
                  {" "}
                  · artifact <code>{each.artifact}</code>
                </>
              )}
            </p>
            <Markdown text={each.details} />
            {each.example !== null && (
              <details>
                <summary>Example</summary>
                <Json value={each.example} />
              </details>
            )}
            <div className="command">
              <code>{each.insert.trimEnd()}</code>
              <CopyButton text={each.insert} label={`Copy the text to insert ${each.ref}`} />
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
