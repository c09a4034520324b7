import { useState } from "react";
import { Refused, login } from "./api";
import type { ConsoleError } from "./types";
import { Command, ErrorBox } from "./ui";

/** Shown in place of every page until the server knows who is looking. */
export function SignIn() {
  const [error, setError] = useState<ConsoleError | null>(null);
  return (
    <div className="sign-in">
      <h1>Open the console again</h1>
      <p>The server does not know this browser. On your own machine, open the address that this prints:</p>
      <Command text="interlock console" />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const token = new FormData(event.currentTarget).get("token");
          login(typeof token === "string" ? token : "").then(
            () => window.location.reload(),
            (refused: unknown) => {
              if (!(refused instanceof Refused)) throw refused;
              setError({ ...refused.error, nextAction: "Check the token that `interlock auth add` printed." });
            },
          );
        }}
      >
        <label className="field">
          On a shared server, sign in with your token
          <input name="token" type="password" autoComplete="off" required />
        </label>
        <button type="submit" className="button primary">
          Sign in
        </button>
      </form>
      {error && <ErrorBox error={error} />}
    </div>
  );
}
