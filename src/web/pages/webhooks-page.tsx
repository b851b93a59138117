import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Webhook } from "../../domain/webhooks/webhook.ts";
import { ButtonDialog } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { client } from "../query.ts";
import { useWebhookTexts } from "../texts/webhooks.ts";
import { eventsText, WebhookBadge } from "../webhooks/webhook-badge.tsx";
import { WebhookForm } from "../webhooks/webhook-form.tsx";
import { WebhookSecret } from "../webhooks/webhook-secret.tsx";

/** Webhooks, for admins. */
export function WebhooksPage() {
  const texts = useWebhookTexts();
  const queries = useQueryClient();
  const [made, setMade] = useState<{ readonly secret: string; readonly url: string } | null>(null);
  useTitle(texts.title);
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">{texts.title}</h1>
        <ButtonDialog button={texts.new} className="button button-primary" title={texts.new}>
          {(close) => (
            <WebhookForm
              verb={texts.create}
              save={async (input) => {
                const created = await client.webhook.create(input);
                close(() => setMade(created));
                await queries.invalidateQueries({ queryKey: ["webhooks"] });
              }}
            />
          )}
        </ButtonDialog>
      </div>
      {made !== null && <WebhookSecret key={made.secret} {...made} onDone={() => setMade(null)} />}
      <PagedList
        label={texts.title}
        queryKey={["webhooks"]}
        readPage={(cursor) => client.webhook.list({ limit: 30, cursor })}
        itemsOf={(page) => page.webhooks}
        empty={texts.none}
      >
        {(webhook) => <Row key={webhook.id} webhook={webhook} />}
      </PagedList>
    </div>
  );
}

function Row({ webhook }: { webhook: Webhook }) {
  const texts = useWebhookTexts();
  return (
    <li className="relative flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-3 hover:bg-sunken">
      <div className="min-w-0 flex-1 basis-56">
        <Link
          to="/webhooks/$id"
          params={{ id: webhook.id }}
          className="font-medium break-all after:absolute after:inset-0"
        >
          {webhook.url}
        </Link>
        <p className="text-sm break-words text-muted">
          {texts.events} {eventsText(webhook, texts)} · <Ago at={webhook.createdAt} />
        </p>
        {webhook.disabledReason !== null && (
          <p className="text-sm text-bad">{texts.disabledBy(webhook.disabledReason)}</p>
        )}
      </div>
      <WebhookBadge webhook={webhook} />
    </li>
  );
}
