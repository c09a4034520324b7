// Notifications of the desktop: asked for by a button, and only about questions that whoever looks may decide.
import { useEffect, useRef, useState } from "react";
import { visible } from "./markdown";
import { go } from "./router";
import type { InboxLine, InboxPage } from "./types";

const CHOICE = "interlock-notifications";

const isSupported = () => "Notification" in window;
const isWanted = () => isSupported() && Notification.permission === "granted" && window.localStorage.getItem(CHOICE) !== "off";
const isLookedAt = () => !document.hidden && document.hasFocus();

function notify({ place, question, name, title }: InboxLine): void {
  const notification = new Notification(visible(name), { body: visible(title), tag: place });
  notification.onclick = () => {
    window.focus();
    go(`/console/inbox?session=${question.sessionId}&place=${place}`);
    notification.close();
  };
}

/** Tell of questions that have come since the page was opened, while it is not looked at. */
export function useNotifications(inbox: InboxPage | null): void {
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    if (!inbox || (inbox.counting && known.current === null)) return;
    const before = known.current;
    const fresh = before ? inbox.questions.filter((line) => line.mayDecide && !before.has(line.place)) : [];
    if (isWanted() && !isLookedAt()) fresh.forEach(notify);
    known.current = new Set([...(before ?? []), ...inbox.questions.map(({ place }) => place)]);
  }, [inbox]);
}

/** Lets a person turn notifications on and off; the browser is asked by the click, never before. */
export function Notify() {
  const [isOn, setOn] = useState(isWanted);
  if (!isSupported() || Notification.permission === "denied") return null;
  const turn = (to: "on" | "off") => {
    window.localStorage.setItem(CHOICE, to);
    setOn(isWanted());
  };
  return (
    <p>
      {isOn ? (
        <button type="button" className="button small" onClick={() => turn("off")}>
          Notify me no longer
        </button>
      ) : (
        <button type="button" className="button small" onClick={() => void Notification.requestPermission().then(() => turn("on"))}>
          Notify me when a question waits
        </button>
      )}
    </p>
  );
}
