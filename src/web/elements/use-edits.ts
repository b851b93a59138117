import { useState } from "react";

/** The values of a form over what the server has. */
export interface Edits<Values> {
  /** The written value of each field, or else the server's current one. */
  readonly values: Values;
  /** Fields that differ from the server: only they are to be sent, so that no other person's change is reverted. */
  readonly changed: readonly (keyof Values & string)[];
  readonly edit: <Name extends keyof Values & string>(name: Name, value: Values[Name]) => void;
  /**
   * To be called once values were saved: what was written meanwhile is still to be saved.
   * @param sent the values as they were written
   * @param saved the same as the server has them now
   */
  readonly onSaved: (sent: Values, saved: Values) => void;
}

/**
 * The edits in a form. An untouched field shows the server's value, also if that changes while the form is open.
 * @param known what the server has
 */
export function useEdits<Values extends Readonly<Record<string, string>>>(known: Values): Edits<Values> {
  const [edits, setEdits] = useState<Partial<Values>>({});
  const namesOf = (some: Partial<Values>) => Object.keys(some) as (keyof Values & string)[];
  const without = (all: Partial<Values>, isLeftOut: (name: keyof Values & string) => boolean): Partial<Values> =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !isLeftOut(name))) as Partial<Values>;
  const isAsKnown = (name: keyof Values & string): boolean => edits[name] === known[name];
  // Fields equal to the server's follow the server from now on.
  if (namesOf(edits).some(isAsKnown)) setEdits(without(edits, isAsKnown));
  return {
    values: { ...known, ...edits },
    changed: namesOf(edits).filter((name) => !isAsKnown(name)),
    edit: (name, value) => setEdits((before) => ({ ...before, [name]: value })),
    onSaved: (sent, saved) =>
      setEdits((before) => {
        const later = without(before, (name) => before[name] === sent[name]);
        return { ...saved, ...later };
      }),
  };
}
