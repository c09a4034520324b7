// What the view that is shown can do, for the command palette: every action has a name and can be reached by keyboard.
import { useEffect } from "react";

export interface Command {
  label: string;
  hint: string;
  run: () => void;
}

let offered: Command[] = [];

export const offeredCommands = (): readonly Command[] => offered;

/** Offer commands while the view is shown. */
export function useCommands(commands: Command[]): void {
  useEffect(() => {
    offered = [...offered, ...commands];
    return () => {
      offered = offered.filter((each) => !commands.includes(each));
    };
  });
}

export function copied(text: string): () => void {
  return () => void navigator.clipboard.writeText(text);
}
