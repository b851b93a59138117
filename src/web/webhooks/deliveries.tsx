import { useInfiniteQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { deliveryStatuses, type Delivery, type Webhook } from "../../domain/webhook.ts";
import { Badge, type Tone } from "../badge.tsx";
import { ErrorText } from "../layout.tsx";
import { client } from "../query.ts";
import { ShowMore } from "../show-more.tsx";
import { Ago, Until } from "../time.tsx";
import { DeliveryLog } from "./delivery-log.tsx";

/** What a webhook was told and still is to be, the newest first. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const fieldId = useId();
  const [status, setStatus] = useState<Delivery["status"] | "">("");
  const deliveries = useInfiniteQuery({
    queryKey: ["deliveries", webhook.id, status],
    queryFn: ({ pageParam }) =>
      client.delivery.list({
        webhookId: webhook.id,
        limit: 20,
        cursor: pageParam,
        ...(status !== "" && { status }),
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    refetchInterval: 3_000,
  });
  const found = deliveries.data?.pages.flatMap((page) => page.deliveries);
  return (
    <section aria-labelledby={`${fieldId}-title`} className="space-y-3">
      <div className="flex flex-wrap items-center gap-3">
        <h2 id={`${fieldId}-title`} className="mr-auto font-medium">
          Deliveries
        </h2>
        <label htmlFor={fieldId} className="text-sm">
          Show
        </label>
        <select
          id={fieldId}
          className="field w-auto"
          value={status}
          onChange={({ target }) => setStatus(deliveryStatuses.find((known) => known === target.value) ?? "")}
        >
          <option value="">everything</option>
          {deliveryStatuses.map((known) => (
            <option key={known}>{known}</option>
          ))}
        </select>
      </div>
      <ErrorText error={deliveries.error} />
      {found === undefined && deliveries.error === null && <p className="text-muted">Loading the deliveries …</p>}
      {found?.length === 0 && (
        <p className="card px-4 py-8 text-center text-sm text-muted">
          {status === "" ? "Nothing was told so far." : "There is nothing of this kind."}
          {status === "" && webhook.enabled && " Send a test to see whether it arrives."}
        </p>
      )}
      {found !== undefined && found.length > 0 && (
        <ul aria-label="Deliveries" className="card divide-y divide-line text-sm">
          {found.map((delivery) => (
            <Row key={delivery.id} delivery={delivery} enabled={webhook.enabled} />
          ))}
        </ul>
      )}
      <ShowMore list={deliveries} />
    </section>
  );
}

const looks: Record<Delivery["status"], { label: string; tone: Tone }> = {
  pending: { label: "Pending", tone: "warn" },
  delivered: { label: "Delivered", tone: "good" },
  dead: { label: "Dead", tone: "bad" },
};

function Row({ delivery, enabled }: { delivery: Delivery; enabled: boolean }) {
  const [open, setOpen] = useState(false);
  const { attempts, nextAttemptAt } = delivery;
  return (
    <li>
      <details className="group" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="flex cursor-pointer list-none flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 hover:bg-sunken">
          <span aria-hidden className="text-muted group-open:rotate-90">
            ›
          </span>
          <code className="font-medium break-all sm:min-w-40">{delivery.type}</code>
          <Badge {...looks[delivery.status]} moving={delivery.status === "pending"} />
          <span className="ml-auto text-muted">
            {attempts === 1 ? "1 attempt" : `${attempts} attempts`}
            {nextAttemptAt !== null && attempts > 0 && (
              <>
                , next <Until at={nextAttemptAt} />
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
