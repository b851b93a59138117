import { SecretOnce } from "../elements/secret-once.tsx";

/** The secret of a new webhook, or after its rotation. */
export function WebhookSecret({ secret, url, onDone }: { secret: string; url: string; onDone: () => void }) {
  return (
    <SecretOnce
      label={`Secret of ${url}`}
      about="Deliveries are signed with it from now on. Give it to the receiver now: it is shown this once."
      secret={secret}
      onDone={onDone}
    />
  );
}
