import { ErrorText } from "./notice.tsx";
import { CloseDialog } from "./dialog.tsx";

/**
 * The end of a form in a dialog: what was wrong, and its buttons.
 * @param error of no field; null if there is none
 * @param verb the submitting button's label, and `pendingVerb` the one while the form is sent
 */
export function FormEnd({
  error,
  isPending,
  verb,
  pendingVerb,
}: {
  error: Error | null;
  isPending: boolean;
  verb: string;
  pendingVerb: string;
}) {
  return (
    <>
      <ErrorText error={error} />
      <div className="flex justify-end gap-2">
        <CloseDialog />
        <button type="submit" className="button button-primary" disabled={isPending}>
          {isPending ? pendingVerb : verb}
        </button>
      </div>
    </>
  );
}
