import { SecretOnce } from "../elements/secrets/secret-once.tsx";
import { useWebhookTexts } from "../texts/webhooks.ts";

/** The secret of a new webhook, or after its rotation. */
export function WebhookSecret({ secret, url, onDone }: { secret: string; url: string; onDone: () => void }) {
  const texts = useWebhookTexts();
  return <SecretOnce label={texts.secretOf(url)} about={texts.secretAbout} secret={secret} onDone={onDone} />;
}
