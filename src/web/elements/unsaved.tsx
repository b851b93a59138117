import { useBlocker } from "@tanstack/react-router";
import { useCallback, useEffect, useId } from "react";
import { useUnsavedTexts } from "../texts/unsaved.ts";
import { Confirmation } from "./dialog.tsx";

/** Forms that have changes, by their ids: of several on one page the first asks, for all of them. */
const changedForms = new Set<string>();

interface Place {
  readonly pathname: string;
  readonly search: unknown;
}

/**
 * Part of a form: asks before the page is left, by a link, the browser's buttons, a reload or its tab, while what was changed is not
 * saved. What goes on after a form was saved, and what stays on the page with another address, navigates with `ignoreBlocker`.
 */
export function Unsaved({ isChanged }: { readonly isChanged: boolean }) {
  const texts = useUnsavedTexts();
  const id = useId();
  useEffect(() => {
    if (!isChanged) return undefined;
    changedForms.add(id);
    return () => void changedForms.delete(id);
  }, [id, isChanged]);
  const shouldBlockFn = useCallback(
    // A link into the page, such as that to its content, leaves nothing.
    ({ current, next }: { current: Place; next: Place }) =>
      keyOf(current) !== keyOf(next) && changedForms.values().next().value === id,
    [id],
  );
  const leaving = useBlocker({ shouldBlockFn, disabled: !isChanged, withResolver: true });
  if (leaving.status !== "blocked") return null;
  return (
    <Confirmation button={texts.leave} question={texts.question} onConfirm={leaving.proceed} onClosed={leaving.reset}>
      {texts.about}
    </Confirmation>
  );
}

function keyOf({ pathname, search }: Place): string {
  return JSON.stringify([pathname, search]);
}
