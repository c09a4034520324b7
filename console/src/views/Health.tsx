import { useRef, useState } from "react";
import { act, Refused, usePage } from "../api";
import { visible } from "../markdown";
import { go } from "../router";
import type { ActionDone, ConsoleError, HealthPage } from "../types";
import { Command, ErrorBox, Skeleton } from "../ui";

export function Health() {
  const { data, error } = usePage<HealthPage>("health", {}, "");
  const [refused, setRefused] = useState<ConsoleError | null>(null);
  const file = useRef<HTMLInputElement>(null);
  if (error) return <ErrorBox error={error} />;
  if (!data) return <Skeleton />;
  return (
    <>
      <header className="page-head">
        <h1>Health and settings</h1>
        <p className="quiet">
          Interlock {data.version}, as {data.principal} ({data.role})
        </p>
      </header>
      <section>
        <h2>This server</h2>
        <dl className="wide">
          <div>
            <dt>New sessions begin in mode</dt>
            <dd>
              {data.newSessions.mode}, {data.newSessions.riskPolicy} risk
            </dd>
          </div>
          <div>
            <dt>PIN for decisions</dt>
            <dd>{data.hasPin ? "set" : "not set; interlock config pin"}</dd>
          </div>
          <div>
            <dt>Workflows</dt>
            <dd>
              {data.workflows}, {data.errors === 0 ? "no errors" : `${data.errors} errors`}
            </dd>
          </div>
          <div>
            <dt>Sources</dt>
            <dd>{visible(data.sources.join(", "))}</dd>
          </div>
        </dl>
        <p className="quiet">To check every stored event and row, run:</p>
        <Command text="interlock doctor" />
      </section>
      <section>
        <h2>Import a session</h2>
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            const chosen = file.current?.files?.[0];
            if (!chosen) return;
            void chosen
              .text()
              .then((text) => act<ActionDone>("import", text))
              .then(
                (done) => go(`/console/sessions/${done.sessionId}`),
                (error: unknown) => {
                  if (!(error instanceof Refused)) throw error;
                  setRefused(error.error);
                },
              );
          }}
        >
          <label className="field grow">
            A bundle that was exported elsewhere
            <input ref={file} type="file" accept="application/json,.json" required />
          </label>
          <button className="button" type="submit">
            Import
          </button>
        </form>
        {refused && <ErrorBox error={refused} />}
      </section>
      {data.settings.length > 0 && (
        <section>
          <h2>Settings</h2>
          <div className="table-wrap">
            <table>
              <thead>
                <tr>
                  <th scope="col">Setting</th>
                  <th scope="col">Value</th>
                  <th scope="col">From</th>
                </tr>
              </thead>
              <tbody>
                {data.settings.map((line) => (
                  <tr key={line.name}>
                    <th scope="row">
                      <code>{line.name}</code>
                    </th>
                    <td data-label="Value">{visible(line.value) || "–"}</td>
                    <td data-label="From">{line.origin}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </>
  );
}
