import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Delivery, DeliveryDetail } from "../../domain/webhooks/webhook.ts";
import { Fact } from "../elements/fact.tsx";
import { Ago } from "../elements/time.tsx";
import { formatDuration } from "../texts/formats.ts";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useWebhookTexts } from "../texts/webhooks.ts";

/** A delivery's body and attempts with their answers, and a button to send it again. */
export function DeliveryLog({ delivery, enabled }: { delivery: Delivery; enabled: boolean }) {
  const texts = useWebhookTexts().log;
  const { id, webhookId, updatedAt, attempts, status } = delivery;
  const queries = useQueryClient();
  const detail = useQuery({
    // These values change with the log, so that it is loaded again.
    queryKey: ["delivery", id, updatedAt, attempts, status],
    queryFn: () => client.delivery.get(id),
    placeholderData: (before) => before,
  });
  const sessionId = detail.data === undefined ? null : sessionOf(detail.data);
  const resend = useMutation({
    mutationFn: () => client.delivery.resend(id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["deliveries", webhookId] }),
  });
  return (
    <div className="space-y-3 border-t border-line bg-ground p-4">
      <ErrorText error={detail.error} />
      {detail.data === undefined && detail.error === null && <p className="text-muted">{texts.loading}</p>}
      {detail.data !== undefined && <Attempts log={detail.data.log} />}
      <dl>
        <Fact name="webhook-id">
          <code className="text-xs">{id}</code>
        </Fact>
      </dl>
      {detail.data !== undefined && <Data data={detail.data.data} />}
      {sessionId !== null && (
        <Link to="/sessions/$id" params={{ id: sessionId }} className="block w-fit text-accent underline">
          {texts.session}
        </Link>
      )}
      <div className="flex flex-wrap items-center gap-3">
        {status === "pending" ? (
          <p className="text-muted">{texts.waits}</p>
        ) : (
          <>
            <button
              type="button"
              className="button"
              disabled={resend.isPending || !enabled}
              onClick={() => resend.mutate()}
            >
              {texts.resend}
            </button>
            {!enabled && <span className="text-muted">{texts.enableFirst}</span>}
          </>
        )}
        <ErrorText error={resend.error} />
      </div>
    </div>
  );
}

function sessionOf({ type, data }: DeliveryDetail): string | null {
  const id = type.startsWith("session.") ? data["id"] : data["sessionId"];
  return typeof id === "string" ? id : null;
}

function Attempts({ log }: { log: DeliveryDetail["log"] }) {
  const texts = useWebhookTexts().log;
  if (log.length === 0) return <p className="text-muted">{texts.notTried}</p>;
  return (
    <ol aria-label={texts.attempts} className="space-y-1">
      {log.map(({ at, durationMs, status, error }, index) => (
        <li key={index} className="flex flex-wrap items-baseline gap-x-3">
          <span className={error === null ? "text-good" : "text-bad"}>
            {status === null ? texts.noAnswer : texts.answered(status)}
          </span>
          {error !== null && <span className="min-w-0 break-words">{error}</span>}
          <span className="ml-auto text-muted">
            {formatDuration(durationMs)} · <Ago at={at} />
          </span>
        </li>
      ))}
    </ol>
  );
}

function Data({ data }: { data: DeliveryDetail["data"] }) {
  const texts = useWebhookTexts().log;
  if (Object.keys(data).length === 0) return null;
  return (
    <pre
      tabIndex={0}
      aria-label={texts.data}
      className="max-h-96 overflow-auto rounded-md bg-sunken p-2 font-mono text-xs break-words whitespace-pre-wrap"
    >
      {JSON.stringify(data, null, 2)}
    </pre>
  );
}
