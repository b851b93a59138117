import { useEffect, useId, useRef } from "react";
import { useElementTexts } from "../../texts/elements.ts";
import { CopyButton } from "../copy-button.tsx";

/** Shows a new secret once, while the page is open: the server never shows it again. */
export function SecretOnce({
  label,
  about,
  secret,
  onDone,
}: {
  label: string;
  /** The purpose of the secret. */
  about: string;
  secret: string;
  onDone: () => void;
}) {
  const texts = useElementTexts();
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  return (
    <section aria-label={texts.newSecret} className="card space-y-3 border-accent p-4">
      <div className="text-sm">
        <label htmlFor={id} className="block font-medium break-all">
          {label}
        </label>
        <p id={`${id}-about`} className="text-muted">
          {about}
        </p>
      </div>
      <div className="flex flex-wrap gap-2">
        <input
          ref={field}
          id={id}
          aria-describedby={`${id}-about`}
          readOnly
          value={secret}
          className="field min-w-0 flex-1 basis-64 bg-sunken font-mono"
          onFocus={({ target }) => target.select()}
        />
        <CopyButton text={secret} what={texts.theSecret} />
        <button type="button" className="button button-primary" onClick={onDone}>
          {texts.done}
        </button>
      </div>
    </section>
  );
}
