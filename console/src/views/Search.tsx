import { useEffect, useState } from "react";
import { address, usePage } from "../api";
import { visible } from "../markdown";
import { go, Link, useRoute } from "../router";
import type { SearchPage } from "../types";
import { Empty, ErrorBox, Skeleton, StatusBadge, Time } from "../ui";

const WHY: Record<string, string> = {
  matched_exact_id: "id",
  matched_notes: "title or notes",
  matched_workflow: "workflow",
  matched_head_sha: "commit",
  matched_branch: "branch",
  matched_deep: "older notes",
  matched_some_words: "some of the words",
};

export function Search() {
  const query = useRoute().query.get("q") ?? "";
  const [typed, setTyped] = useState(query);
  useEffect(() => setTyped(query), [query]);
  useEffect(() => {
    if (typed === query) return;
    const timer = window.setTimeout(() => go(address("search", { q: typed }), true), 250);
    return () => window.clearTimeout(timer);
  }, [typed, query]);
  const { data, error } = usePage<SearchPage>("search", { q: query });
  const isNothing = data && data.hits.length + data.workflows.length + data.builtins.length === 0;
  return (
    <>
      <header className="page-head">
        <h1>Search</h1>
        <p className="quiet">Sessions by id, title, notes, workflow, branch or commit; workflows and their steps; what is built in.</p>
      </header>
      <div className="filters" role="search">
        <input type="search" className="large" aria-label="Search everything" placeholder="login test, AUTH-1234, a commit, a step…" autoFocus value={typed} onChange={(event) => setTyped(event.target.value)} />
      </div>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={4} />}
      {data?.leftOut && <p className="quiet">Some of the newest work was not searched; search again in a few seconds.</p>}
      {query && isNothing && (
        <Empty title="Nothing was found">
          <p>
            Try fewer words, or look through <Link to="/console/runs">all runs</Link>.
          </p>
        </Empty>
      )}
      {data && data.hits.length > 0 && (
        <section aria-label="Sessions">
          <h2>Sessions</h2>
          <ul className="cards one">
            {data.hits.map((hit) => (
              <li key={hit.sessionId}>
                <h3>
                  <Link to={`/console/sessions/${hit.ref}`}>{visible(hit.title)}</Link>
                </h3>
                <p className="facts quiet">
                  <StatusBadge status={hit.status} />
                  <code>{hit.workflowId}</code>
                  <span>found by {WHY[hit.why] ?? hit.why}</span>
                  <Time at={hit.updatedAt} />
                </p>
                {hit.snippet && <p className="snippet">{visible(hit.snippet)}</p>}
              </li>
            ))}
          </ul>
          {data.more && (
            <p>
              <Link to={address("runs", { q: query })}>All sessions with these words</Link>
            </p>
          )}
        </section>
      )}
      {data && data.workflows.length > 0 && (
        <section aria-label="Workflows">
          <h2>Workflows</h2>
          <ul className="cards one">
            {data.workflows.map((hit) => (
              <li key={hit.id}>
                <h3>
                  <Link to={`/console/workflows/${encodeURIComponent(hit.id)}`}>{visible(hit.name)}</Link>
                </h3>
                <p className="facts quiet">
                  <code>{hit.id}</code>
                  {hit.items.map((item) => (
                    <span key={item.id}>
                      {visible(item.title)} <code>{visible(item.id)}</code>
                    </span>
                  ))}
                </p>
                {hit.items.length === 0 && <p className="snippet">{visible(hit.description)}</p>}
              </li>
            ))}
          </ul>
        </section>
      )}
      {data && data.builtins.length > 0 && (
        <section aria-label="Built in">
          <h2>Built in</h2>
          <ul className="cards one">
            {data.builtins.map((hit) => (
              <li key={`${hit.kind} ${hit.ref}`}>
                <h3>
                  <Link to={address("builtins", { q: hit.ref })}>{visible(hit.title)}</Link>
                </h3>
                <p className="facts quiet">
                  <span>{hit.kind}</span>
                  <code>{hit.ref}</code>
                </p>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
