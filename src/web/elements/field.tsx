import { useId, type ReactNode } from "react";
import { ClientError } from "../../client.ts";
import { ErrorText } from "./notice.tsx";

/** Attributes that link an input to its label, hint and error. */
export interface FieldAttributes {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": boolean | undefined;
}

/** A label, its input, a hint, and the API's error message. */
export function Field({
  label,
  hint,
  error = null,
  children,
}: {
  readonly label: string;
  readonly hint?: string;
  readonly error?: Error | null;
  readonly children: (attributes: FieldAttributes) => ReactNode;
}) {
  const id = useId();
  const attributes: FieldAttributes = {
    id,
    "aria-describedby": error === null && hint === undefined ? undefined : `${id}-about`,
    "aria-invalid": error === null ? undefined : true,
  };
  return (
    <div className="space-y-1 text-sm">
      <label htmlFor={id} className="block font-medium">
        {label}
      </label>
      {children(attributes)}
      {attributes["aria-describedby"] !== undefined && (
        <div id={attributes["aria-describedby"]}>
          {error === null ? <p className="text-xs text-muted">{hint}</p> : <ErrorText error={error} />}
        </div>
      )}
    </div>
  );
}

/** The field that an error is about: the API's messages begin with the field's name. */
export function fieldOf<Name extends string>(error: Error | null, names: readonly Name[]): Name | null {
  if (!(error instanceof ClientError) || (error.status !== 400 && error.status !== 409)) return null;
  return names.find((name) => new RegExp(`^${name}[ .:]`, "u").test(error.message)) ?? null;
}
