import { useEffect, useState } from "react";
import { usePage } from "../api";
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
};

export function Search() {
  const query = useRoute().query.get("q") ?? "";
  const [typed, setTyped] = useState(query);
  useEffect(() => setTyped(query), [query]);
  useEffect(() => {
    if (typed === query) return;
    const timer = window.setTimeout(() => go(`/console/search?${new URLSearchParams({ q: typed }).toString()}`, true), 250);
    return () => window.clearTimeout(timer);
  }, [typed, query]);
  const { data, error } = usePage<SearchPage>("search", { q: query });
  return (
    <>
      <header className="page-head">
        <h1>Search</h1>
        <p className="quiet">Ids, titles, notes, workflows, branches and commits; the best five sessions.</p>
      </header>
      <div className="filters">
        <input type="search" className="large" aria-label="Search sessions" placeholder="login test, AUTH-1234, a commit…" autoFocus value={typed} onChange={(event) => setTyped(event.target.value)} />
      </div>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={4} />}
      {data && query && data.hits.length === 0 && (
        <Empty title="Nothing was found">
          <p>Try fewer words, or look through <Link to="/console/runs">all runs</Link>.</p>
        </Empty>
      )}
      <ul className="cards one">
        {data?.hits.map((hit) => (
          <li key={hit.sessionId}>
            <h2>
              <Link to={`/console/sessions/${hit.ref}`}>{visible(hit.title)}</Link>
            </h2>
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
    </>
  );
}
