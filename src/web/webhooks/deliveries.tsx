import { useId, useState } from "react";
import { deliveryStatuses, type Delivery, type Webhook } from "../../domain/webhooks/webhook.ts";
import { Badge, type Tone } from "../elements/badge.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Select } from "../elements/select.tsx";
import { Ago, Until } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useWebhookTexts } from "../texts/webhooks.ts";
import { DeliveryLog } from "./delivery-log.tsx";

/** A webhook's deliveries, the newest first. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const texts = useWebhookTexts().deliveries;
  const titleId = useId();
  const [status, setStatus] = useState<Delivery["status"]>();
  return (
    <section aria-labelledby={titleId} className="space-y-3">
      <div className="flex flex-wrap items-center gap-3">
        <h2 id={titleId} className="mr-auto font-medium">
          {texts.title}
        </h2>
        <Select
          label={texts.status}
          value={status}
          all={texts.allStatuses}
          options={deliveryStatuses.map((each) => ({ value: each, name: texts.statuses[each] }))}
          onChange={setStatus}
        />
      </div>
      <PagedList
        label={texts.title}
        queryKey={["deliveries", webhook.id, status ?? ""]}
        readPage={(cursor) =>
          client.delivery.list({ webhookId: webhook.id, limit: 20, cursor, ...(status !== undefined && { status }) })
        }
        itemsOf={(page) => page.deliveries}
        refreshMs={3_000}
        empty={status === undefined ? `${texts.none}${webhook.enabled ? texts.sendTest : ""}` : texts.nothing}
      >
        {(delivery) => <Row key={delivery.id} delivery={delivery} enabled={webhook.enabled} />}
      </PagedList>
    </section>
  );
}

const tones: Record<Delivery["status"], Tone> = { pending: "warn", delivered: "good", dead: "bad" };

function Row({ delivery, enabled }: { delivery: Delivery; enabled: boolean }) {
  const texts = useWebhookTexts().deliveries;
  const [open, setOpen] = useState(false);
  const { attempts, nextAttemptAt } = delivery;
  return (
    <li className="text-sm">
      <details className="group" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="flex cursor-pointer list-none flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 -outline-offset-2 hover:bg-sunken">
          <span aria-hidden className="text-muted group-open:rotate-90">
            ›
          </span>
          <code className="font-medium break-all sm:min-w-40">{delivery.type}</code>
          <Badge
            tone={tones[delivery.status]}
            label={texts.statuses[delivery.status]}
            moving={delivery.status === "pending"}
          />
          <span className="w-full pl-5 text-muted sm:ml-auto sm:w-auto sm:pl-0">
            {texts.attempts(attempts)}
            {nextAttemptAt !== null && attempts > 0 && (
              <>
                {texts.next} <Until at={nextAttemptAt} />
              </>
            )}
            {" · "}
            <Ago at={delivery.createdAt} />
          </span>
        </summary>
        {open && <DeliveryLog delivery={delivery} enabled={enabled} />}
      </details>
    </li>
  );
}
