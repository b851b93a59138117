import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Webhook } from "../../domain/webhooks/webhook.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Fact } from "../elements/fact.tsx";
import { BackLink, PageTitle } from "../elements/page-head.tsx";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { Absent, ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useWebhookTexts } from "../texts/webhooks.ts";
import { Deliveries } from "../webhooks/deliveries.tsx";
import { eventsText, WebhookBadge } from "../webhooks/webhook-badge.tsx";
import { WebhookForm } from "../webhooks/webhook-form.tsx";
import { WebhookSecret } from "../webhooks/webhook-secret.tsx";

/** One webhook with its deliveries. */
export function WebhookPage({ id }: { id: string }) {
  const texts = useWebhookTexts();
  const webhook = useQuery({
    queryKey: ["webhook", id],
    queryFn: () => client.webhook.get(id),
    // Offstage disables the webhook if its address answers that it is gone.
    refetchInterval: 3_000,
  });
  useTitle(texts.one);
  if (webhook.data !== undefined) return <Found webhook={webhook.data} />;
  return <Absent missing={texts.missing} error={webhook.error} reason={texts.missingReason} retry={webhook.refetch} />;
}

function Found({ webhook }: { webhook: Webhook }) {
  const texts = useWebhookTexts();
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <div className="space-y-6">
      <div className="space-y-3">
        <BackLink to="/webhooks" name={texts.title} />
        <PageTitle title={webhook.url}>
          <WebhookBadge webhook={webhook} />
        </PageTitle>
        <dl className="flex flex-wrap gap-x-5 gap-y-1 text-sm">
          <Fact name={texts.events}>{eventsText(webhook, texts)}</Fact>
          <Fact name={texts.created}>
            <Ago at={webhook.createdAt} />
          </Fact>
        </dl>
        {webhook.disabledReason !== null && (
          <p role="note" className="rounded-lg bg-bad-soft px-4 py-3 text-sm text-bad">
            {texts.disabledWithRemedy(webhook.disabledReason)}
          </p>
        )}
        <Actions webhook={webhook} onSecret={setSecret} />
      </div>
      {secret !== null && (
        <WebhookSecret key={secret} secret={secret} url={webhook.url} onDone={() => setSecret(null)} />
      )}
      <Deliveries webhook={webhook} />
    </div>
  );
}

function Actions({ webhook, onSecret }: { webhook: Webhook; onSecret: (secret: string) => void }) {
  const texts = useWebhookTexts();
  const { id, enabled } = webhook;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const show = async (changed: Webhook): Promise<void> => {
    queries.setQueryData(["webhook", id], changed);
    await queries.invalidateQueries({ queryKey: ["webhooks"] });
    // Disabling a webhook ends its pending deliveries.
    await queries.invalidateQueries({ queryKey: ["deliveries", id] });
  };
  const change = useMutation({
    mutationFn: () => client.webhook.update(id, { enabled: !enabled }),
    onSuccess: show,
  });
  const test = useMutation({
    mutationFn: () => client.webhook.test(id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["deliveries", id] }),
  });
  const rotate = useMutation({
    mutationFn: () => client.webhook.rotate(id),
    onSuccess: ({ secret }) => onSecret(secret),
    // Don't keep the secret in the cache.
    gcTime: 0,
  });
  const remove = useMutation({
    mutationFn: () => client.webhook.delete(id),
    onSuccess: async () => {
      await navigate({ to: "/webhooks" });
      queries.removeQueries({ queryKey: ["webhook", id] });
      await queries.invalidateQueries({ queryKey: ["webhooks"] });
    },
  });
  const all = [change, test, rotate, remove];
  const isPending = all.some((action) => action.isPending);
  return (
    <div className="flex flex-wrap items-center gap-2">
      <button type="button" className="button" disabled={isPending || !enabled} onClick={() => test.mutate()}>
        {texts.test}
      </button>
      <ButtonDialog button={texts.edit} title={texts.editTitle}>
        {(close) => (
          <WebhookForm
            webhook={webhook}
            verb={texts.save}
            save={async (input) => {
              await show(await client.webhook.update(id, input));
              close();
            }}
          />
        )}
      </ButtonDialog>
      <button type="button" className="button" disabled={isPending} onClick={() => change.mutate()}>
        {enabled ? texts.disable : texts.enable}
      </button>
      <ConfirmButton
        button={texts.rotate}
        disabled={isPending}
        question={texts.rotateQuestion}
        onConfirm={() => rotate.mutate()}
      >
        {texts.rotateAbout}
      </ConfirmButton>
      <ConfirmButton
        button={texts.delete}
        disabled={isPending}
        question={texts.deleteQuestion}
        onConfirm={() => remove.mutate()}
      >
        {texts.deleteAbout}
      </ConfirmButton>
      <ErrorText error={all.find(({ error }) => error !== null)?.error ?? null} />
    </div>
  );
}
