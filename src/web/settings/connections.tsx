import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { useState } from "react";
import type { Connection } from "../../domain/repositories/connection.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretOnce } from "../elements/secret-once.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { CallingForm } from "./calling-form.tsx";
import { ConnectionForm, CredentialForm } from "./connection-form.tsx";
import { HealthBadge, HealthProblems } from "./health.tsx";
import { searchOfPage } from "../elements/search-of-page.ts";

/** A webhook's secret that is shown once, with where it goes. */
interface Shown {
  readonly name: string;
  readonly hookUrl: string;
  readonly webhookSecret: string;
}

/** Why a GitHub App that was registered is no connection. */
const problems = {
  expired: "The GitHub App was not connected: its registration took too long, or was begun in another browser.",
  failed: "The GitHub App was not connected: delete it at GitHub, and register another. The server’s log says why.",
} as const;

/** Forges that the organization connected, with their health. */
export function Connections() {
  const queries = useQueryClient();
  const [shown, setShown] = useState<Shown | null>(null);
  const given = useSearch({ from: "/settings", shouldThrow: false });
  const { connection: problem } = searchOfPage(given);
  const reload = () => queries.invalidateQueries({ queryKey: ["connections"] });
  return (
    <section aria-labelledby="connections" className="card space-y-4 p-4">
      <div className="flex items-center gap-3">
        <h2 id="connections" className="mr-auto font-medium">
          Connections
        </h2>
        <ButtonDialog button="Connect a forge" title="Connect a forge">
          {(close) => (
            <ConnectionForm
              onMade={(made) => {
                close(() => setShown(made));
                void reload();
              }}
            />
          )}
        </ButtonDialog>
      </div>
      <p className="text-sm text-muted">
        Forges with credentials of this organization, which its sessions alone use, before those of the server.
      </p>
      {problem !== undefined && <ErrorText error={new Error(problems[problem])} />}
      {shown !== null && (
        <SecretOnce
          key={shown.webhookSecret}
          label={`Webhook secret of ${shown.name}`}
          about={`Give it to the forge’s webhook, whose address is ${shown.hookUrl}, now: it is shown this once.`}
          secret={shown.webhookSecret}
          onDone={() => setShown(null)}
        />
      )}
      <PagedList
        label="Connections"
        queryKey={["connections"]}
        readPage={(cursor) => client.connection.list({ limit: 20, cursor })}
        itemsOf={(page) => page.connections}
        empty="No connections yet."
        className="divide-y divide-line"
      >
        {(connection) => <Row key={connection.id} connection={connection} reload={reload} onSecret={setShown} />}
      </PagedList>
    </section>
  );
}

const credentials: Readonly<Record<Connection["credential"], string>> = {
  token: "token",
  app: "GitHub App",
  configured: "the server’s credential",
};

function Row({
  connection,
  reload,
  onSecret,
}: {
  connection: Connection;
  reload: () => Promise<void>;
  onSecret: (shown: Shown) => void;
}) {
  const { id, name, webUrl, credential, account, health, installUrl, mention, allowedBots } = connection;
  return (
    <li className="space-y-2 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="min-w-0 flex-1 basis-56">
          <p className="font-medium wrap-anywhere">{name}</p>
          <p className="wrap-anywhere text-muted">
            {webUrl} · {credentials[credential]}
            {account !== null && ` of ${account}`} · checked <Ago at={health.checkedAt} />
            {mention !== null && ` · called @${mention}`}
            {allowedBots !== null && ` · steered by ${allowedBots.length === 0 ? "no bot" : allowedBots.join(", ")}`}
          </p>
        </div>
        <HealthBadge health={health} />
      </div>
      <HealthProblems health={health} of={name} />
      {installUrl !== null && (
        <p>
          <a href={installUrl} target="_blank" rel="noreferrer" className="underline">
            Install the App on further repositories
          </a>
        </p>
      )}
      <Actions id={id} connection={connection} reload={reload} onSecret={onSecret} />
    </li>
  );
}

function Actions({
  id,
  connection,
  reload,
  onSecret,
}: {
  id: string;
  connection: Connection;
  reload: () => Promise<void>;
  onSecret: (shown: Shown) => void;
}) {
  const { name } = connection;
  const check = useMutation({ mutationFn: () => client.connection.check(id), onSuccess: reload });
  const rotate = useMutation({
    mutationFn: () => client.connection.rotateSecret(id),
    onSuccess: async (rotated) => {
      onSecret(rotated);
      await reload();
    },
    // Don't keep the secret in the cache.
    gcTime: 0,
  });
  const remove = useMutation({ mutationFn: () => client.connection.delete(id), onSuccess: reload });
  const all = [check, rotate, remove];
  const isPending = all.some((action) => action.isPending);
  return (
    <div className="flex flex-wrap items-center gap-2">
      <button type="button" className="button" disabled={isPending} onClick={() => check.mutate()}>
        {check.isPending ? "Checking …" : "Check again"}
        <span className="sr-only"> {name}</span>
      </button>
      <ButtonDialog button="Replace the credential" title={`New credential of ${name}`}>
        {(close) => (
          <CredentialForm
            connection={connection}
            onSaved={() => {
              close();
              void reload();
            }}
          />
        )}
      </ButtonDialog>
      <ButtonDialog button="Who calls" title={`Who calls Offstage in ${name}`}>
        {(close) => (
          <CallingForm
            connection={connection}
            onSaved={() => {
              close();
              void reload();
            }}
          />
        )}
      </ButtonDialog>
      <ConfirmButton
        button="Rotate the secret"
        of={name}
        disabled={isPending}
        question={`Rotate the webhook secret of ${name}?`}
        onConfirm={() => rotate.mutate()}
      >
        The forge’s webhook must get the new one within a day: until then deliveries with the old one are accepted.
      </ConfirmButton>
      <ConfirmButton
        button="Delete"
        of={name}
        disabled={isPending}
        question={`Delete ${name}?`}
        onConfirm={() => remove.mutate()}
      >
        Its credential is deleted. Sessions on its repositories then use the server’s configuration, if there is one.
      </ConfirmButton>
      <ErrorText error={all.find(({ error }) => error !== null)?.error ?? null} />
    </div>
  );
}
